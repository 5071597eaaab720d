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
#[cfg(any(target_os = "linux", windows))]
mod stop_peers;
mod support;
mod switching;
mod transfer_session;
