//! The name of this host.

/// This host's name according to the system (`gethostname`).
#[cfg(unix)]
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// This host's name according to the environment, `localhost` without one.
#[cfg(not(unix))]
#[must_use]
pub fn host_name() -> String {
    let name = ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}
