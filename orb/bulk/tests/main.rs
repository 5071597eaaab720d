//! Bulk transfers between two ORBs of one process, with foreign parties, and with hostile ones.

mod hostile;
mod parties;
mod reuse;
mod routes;
mod tls;
mod transfers;
