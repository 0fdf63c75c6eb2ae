// Package store is the only package with SQL. It keeps conversations, sessions,
// messages, the inbox and the outbox in SQLite or PostgreSQL, behind one set of
// methods and, wherever the dialects allow, one SQL text.
//
// Everything happens in a transaction: Store.InTx for changes, Store.InRead for
// a read-only snapshot. What it can do is told by its parts, a type for each kind of
// rows (parts.go). Driver errors are classified here, once, with package fault; above
// this package they are only wrapped.
package store
