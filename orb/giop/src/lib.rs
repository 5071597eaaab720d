//! The General Inter-ORB Protocol over bytes: no socket, no thread, no clock.
