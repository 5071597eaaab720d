//! Locks, conditions and atomics, from the one place where Spandrel takes them.
