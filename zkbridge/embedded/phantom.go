package embedded

import "slices"

// Haunt makes what is dialed at one address, as [Server.Dial] is given it, a follower that never
// hears of one deletion: its clients go on to read the node at path, as it is now, and no watch
// on the node fires. The node's deletion is known to all others, and to every write. It does
// nothing if there is no such node.
func (s *Server) Haunt(address, path string) {
	s.call(func() {
		if n := s.tree.nodes[path]; n != nil {
			phantom := *n
			phantom.children = nil
			s.phantoms[address] = append(s.phantoms[address], &phantom)
		}
	})
}

// haunted returns the tree with the nodes that the connection's follower did not hear the
// deletion of.
func (s *Server) haunted(c *conn, t *tree) *tree {
	copied := false
	for _, n := range s.phantoms[c.address] {
		if t.nodes[n.path] != nil {
			continue
		}
		if !copied {
			t, copied = t.clone(), true
		}
		phantom := *n
		if parent := t.nodes[watchParent(n.path)]; parent != nil {
			t.link(parent, &phantom)
		} else {
			t.nodes[n.path] = &phantom
		}
	}
	return t
}

// misses reports whether the connection's follower does not hear of the deletion of a node.
func (s *Server) misses(c *conn, path string) bool {
	return slices.ContainsFunc(s.phantoms[c.address], func(n *node) bool { return n.path == path })
}
