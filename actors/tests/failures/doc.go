// Package failures tests that no failure breaks a lock: lost sessions and connections, stopped,
// frozen and lagging servers, killed and paused processes, nodes and directories that another
// client deletes, the end of the sequence numbers, and a raised generation.
//
//   - TestEndings (table_endings_test.go) is a table of recipes and of the ways in which a grant or
//     a request ends.
//   - TestEveryFaultAtEveryRequest (matrix_test.go) has each fault at each request of each
//     operation (operations_test.go).
//   - TestHistory (history_test.go, history_model_test.go), TestHistoryOfTokens (tokens_history_test.go),
//     TestHistoryOfOutages (outages_history_test.go), chaos_test.go and chaos_cut_linux_test.go are
//     random histories of many clients. Models and ledgers check them.
package failures
