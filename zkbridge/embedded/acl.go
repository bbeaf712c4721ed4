package embedded

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	permRead   = 1
	permWrite  = 2
	permCreate = 4
	permDelete = 8
	permAdmin  = 16
	permAll    = 31
)

type identity struct{ scheme, id string }

type acl struct {
	perms int32
	id    identity
}

var (
	anyone   = identity{"world", "anyone"}
	openACL  = []acl{{permAll, anyone}}
	readOnly = []acl{{permRead, anyone}}
)

// digestID returns the identity of "user:password" in the digest scheme.
func digestID(auth string) identity {
	user, _, _ := strings.Cut(auth, ":")
	sum := sha1.Sum([]byte(auth))
	return identity{"digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// fixACL resolves the auth scheme, drops duplicates and refuses what no
// scheme of this server understands.
func fixACL(list []acl, auth []identity) ([]acl, code) {
	if slices.Equal(list, openACL) {
		return openACL, codeOK // spares a copy per node
	}
	var fixed []acl
	for i, a := range list {
		if slices.Contains(list[:i], a) {
			continue
		}
		switch {
		case a.id == anyone:
			fixed = append(fixed, a)
		case a.id.scheme == "auth":
			before := len(fixed)
			for _, id := range auth {
				if id.scheme == "digest" {
					fixed = append(fixed, acl{a.perms, id})
				}
			}
			if len(fixed) == before {
				return nil, codeInvalidACL
			}
		case a.id.scheme == "digest" && validDigest(a.id.id), a.id.scheme == "ip" && validIP(a.id.id):
			fixed = append(fixed, a)
		default:
			return nil, codeInvalidACL
		}
	}
	if len(fixed) == 0 {
		return nil, codeInvalidACL
	}
	return fixed, codeOK
}

// allowed reports whether one of the identities has one of the permissions.
func allowed(list []acl, perm int32, auth []identity) bool {
	for _, a := range list {
		if a.perms&perm == 0 {
			continue
		}
		if a.id == anyone {
			return true
		}
		for _, id := range auth {
			if id == a.id || id.scheme == "ip" && a.id.scheme == "ip" && matchIP(id.id, a.id.id) {
				return true
			}
		}
	}
	return len(list) == 0
}

// validDigest wants user:hash; like Java's split it overlooks colons at the end.
func validDigest(id string) bool {
	return strings.Count(strings.TrimRight(id, ":"), ":") == 1
}

func parseIP(expr string) (addr netip.Addr, bits int, ok bool) {
	host, mask, hasMask := strings.Cut(expr, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is4() {
		return addr, 0, false
	}
	bits = 32
	if hasMask {
		if bits, err = strconv.Atoi(mask); err != nil || bits < 0 || bits > 32 {
			return addr, 0, false
		}
	}
	return addr, bits, true
}

func validIP(expr string) bool {
	_, _, ok := parseIP(expr)
	return ok
}

func matchIP(client, expr string) bool {
	addr, bits, ok := parseIP(expr)
	from, err := netip.ParseAddr(client)
	return ok && err == nil && netip.PrefixFrom(addr, bits).Contains(from)
}

// hidden is what readers without ADMIN see of an ACL: no digests.
func hidden(list []acl) []acl {
	masked := slices.Clone(list)
	for i, a := range masked {
		if a.id.scheme == "digest" {
			user, _, _ := strings.Cut(a.id.id, ":")
			masked[i].id.id = user + ":x"
		}
	}
	return masked
}
