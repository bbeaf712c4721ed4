// Package elections tests campaigns and singletons: one leader at a time, growing tokens, the end
// of a term, and what happens to leaders and candidates without a session or a connection; and the
// partitions that the members of a group lead.
//
// Elections together with Curator's LeaderSelector are in package interop.
package elections
