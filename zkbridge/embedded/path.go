package embedded

import "strings"

// validPath applies ZooKeeper's rules for node names. Java counts in UTF-16
// units, so that everything past the basic plane is a surrogate and refused.
func validPath(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	if path == "/" {
		return true
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	for _, c := range path {
		switch {
		case c <= 0x1f, c >= 0x7f && c <= 0x9f, c >= 0xd800 && c <= 0xf8ff, c >= 0xfff0:
			return false
		}
	}
	return true
}

// parentOf returns the parent's path; ok is false for a path that has none
// that ZooKeeper would look up. The root's children have the parent "".
func parentOf(path string) (parent string, ok bool) {
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	return path[:slash], true
}

// watchParent is parentOf for watches, where the root is "/".
func watchParent(path string) string {
	if slash := strings.LastIndexByte(path, '/'); slash > 0 {
		return path[:slash]
	}
	return "/"
}

func isSpecial(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}
