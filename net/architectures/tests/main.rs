//! Tests of the architectures: sessions without sockets, servers in this process, and the executable.

#[cfg(unix)]
mod executable;
#[cfg(unix)]
mod http_curl;
mod http_requests;
mod http_sessions;
mod in_process;
#[cfg(target_os = "linux")]
mod processes;
// Wine leaves the ends of some connections unannounced.
#[cfg(target_os = "linux")]
mod stop_peers;
mod support;
mod switching;
mod transfer_session;
