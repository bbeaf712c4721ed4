package manager

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Holder is the record that a node has as its data unless the request brings data of its own: the
// process and the owner of the request. What is not known is left out.
type Holder struct {
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	Owner   string `json:"owner,omitempty"`
	// Identity is the identity of a lock server's client, by its certificate. The server writes it.
	Identity string `json:"identity,omitempty"`
	// Data are data of the request beside the rest. lockrun writes them.
	Data string `json:"data,omitempty"`
}

// maxHolderText bounds the bytes of each text in a Holder. The name of an owner may have any
// length.
const maxHolderText = 256

// newHolderRecord encodes the Holder of this process, without an owner.
func newHolderRecord() []byte {
	host, _ := os.Hostname() // an unknown name is left out
	h := Holder{Host: shorten(host), PID: os.Getpid()}
	if len(os.Args) > 0 && os.Args[0] != "" {
		h.Program = shorten(filepath.Base(os.Args[0]))
	}
	record, _ := json.Marshal(h) // of texts and a number: it cannot fail
	return record
}

// shorten bounds a text, and marks what it cuts.
func shorten(text string) string {
	const mark = "…"
	if len(text) <= maxHolderText {
		return text
	}
	end := maxHolderText - len(mark)
	return strings.ToValidUTF8(text[:end], "") + mark // without a part of a character that is cut
}

// NodeData returns the data of a node: those of the request, or else the record of this process and
// the owner, or nil if Config.OmitHolder is set. Nothing may write to the result.
func (m *Manager) NodeData(data []byte, owner string) []byte {
	switch {
	case len(data) > 0:
		return data
	case owner == "" || m.holder == nil:
		return m.holder
	}
	name, _ := json.Marshal(shorten(owner))
	return slices.Concat(m.holder[:len(m.holder)-1], []byte(`,"owner":`), name, []byte("}"))
}

// WithIdentity returns the data of a node for a client of a lock server whose identity is known: a
// record in it, or a new one in place of no data, has the identity. "" is no identity. A client cannot
// give itself another one by a record of its own. Other data stay as they are.
func WithIdentity(data []byte, identity string) []byte {
	h, ok := ParseHolder(data)
	if !ok && len(data) > 0 || h.Identity == identity {
		return data
	}
	h.Identity = shorten(identity)
	with, _ := json.Marshal(h) // of texts and a number: it cannot fail
	return with
}

// ParseHolder returns the record in a node's data. ok is false for other data, such as those of a
// request or of another library.
func ParseHolder(data []byte) (h Holder, ok bool) {
	if len(data) == 0 || data[0] != '{' {
		return Holder{}, false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&h)
	if _, rest := d.Token(); err != nil || rest != io.EOF || h == (Holder{Data: h.Data}) {
		return Holder{}, false
	}
	return h, true
}
