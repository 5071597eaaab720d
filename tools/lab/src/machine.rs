//! The machine of a measurement, and the resources of a process, as far as the system reports them.

use serde::{Deserialize, Serialize};

/// The machine and the program of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system and architecture: `linux x86_64`.
    pub system: String,
    /// The kernel's release, if known.
    pub kernel: Option<String>,
    /// The processor's name, if known.
    pub processor: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// The average number of runnable processes over the last minute before the experiment began, if known.
    pub load: Option<f64>,
    /// The version of Spandrel, and whether it was built without optimisation.
    pub program: String,
}

impl Machine {
    /// Describes the machine on which this process runs.
    #[must_use]
    pub fn here() -> Self {
        let build = if cfg!(debug_assertions) { " (debug build)" } else { "" };
        Self {
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            kernel: read_first_line("/proc/sys/kernel/osrelease"),
            processor: std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| processor_name(&text)),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            load: read_first_line("/proc/loadavg").and_then(|line| line.split(' ').next()?.parse().ok()),
            program: format!("spandrel {}{build}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// A machine for tests of reports.
    #[cfg(test)]
    pub(crate) fn example() -> Self {
        Self {
            system: "linux x86_64".to_owned(),
            kernel: Some("6.1".to_owned()),
            processor: Some("Example 9000".to_owned()),
            cores: 2,
            load: Some(0.1),
            program: "spandrel 0.0.0".to_owned(),
        }
    }

    /// A warning if the load before the experiment was above half of the cores: its times cannot be trusted
    /// then.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let load = self.load.filter(|load| *load > self.cores as f64 / 2.0)?;
        Some(format!(
            "The machine was busy before this began (load {load:.1}): trust ratios more than times and rates.\n"
        ))
    }

    /// One line about it.
    #[must_use]
    pub fn summary(&self) -> String {
        let processor = self.processor.as_deref().unwrap_or("unknown processor");
        let kernel = self.kernel.as_deref().unwrap_or("unknown kernel");
        let cores = if self.cores == 1 { "1 core".to_owned() } else { format!("{} cores", self.cores) };
        format!("{}, {cores} of {processor}, {}, kernel {kernel}", self.program, self.system)
    }
}

fn read_first_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

fn processor_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// Octets of memory of a process at present, where the system reports them.
#[must_use]
pub fn resident_octets(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibi| kibi * 1024)
}

/// The resources of a process at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Octets of resident memory.
    pub resident: u64,
    /// File descriptors that the process has open.
    pub descriptors: u64,
    /// Threads that the process has.
    pub threads: u64,
    /// Active objects of the server.
    pub objects: u64,
}

impl Look {
    /// Takes a sample now.
    #[must_use]
    pub(crate) fn now(objects: u64) -> Self {
        let entries = |folder: &str| std::fs::read_dir(folder).map_or(0, |entries| entries.count() as u64);
        Self {
            resident: resident_octets(std::process::id()).unwrap_or(0),
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            objects,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_warned_of() {
        assert_eq!(Machine::example().warning(), None);
        assert_eq!(Machine { load: None, ..Machine::example() }.warning(), None);
        let busy = Machine { load: Some(7.5), ..Machine::example() };
        assert!(busy.warning().unwrap().contains("(load 7.5)"));
    }

    #[test]
    fn the_processor_is_named_as_the_kernel_names_it() {
        assert_eq!(
            processor_name("processor\t: 0\nmodel name\t: Example 9000\nflags: x\n").as_deref(),
            Some("Example 9000")
        );
        assert_eq!(processor_name("processor: 0\n"), None);
    }
}
