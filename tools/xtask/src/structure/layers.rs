//! Layers of crates: dependencies point down, and inside a layer from left to right.
//!
//! Dependencies of tests alone may point anywhere. So may those between the members of `tests/`.

use crate::metadata::Package;

/// A folder of crates with its crates from left to right.
struct Layer {
    folder: &'static str,
    /// Empty where the order is free.
    crates: &'static [&'static str],
}

/// From bottom to top.
const LAYERS: &[Layer] = &[
    Layer {
        folder: "net",
        crates: &[
            "architectures",
            "xdr",
            "stream",
            "configurator",
            "metrics",
            "reactor",
            "tls",
            "message",
            "ipc",
            "sync",
            "error",
        ],
    },
    Layer {
        folder: "orb",
        crates: &[
            "build",
            "cos",
            "bulk",
            "authorization",
            "ssliop",
            "rt",
            "poa",
            "dynamic",
            "constraint",
            "idl",
            "server",
            "core",
            "transport",
            "connection",
            "giop",
            "cdr",
            "demux",
        ],
    },
    Layer { folder: "spandrel", crates: &[] },
    Layer {
        folder: "services",
        crates: &[
            "serve",
            "up",
            "console",
            "proxy",
            "activator",
            "repository",
            "avstreams",
            "trading",
            "notification",
            "event",
            "delivery",
            "imaging",
            "property",
            "naming",
            "store",
            "daemon",
        ],
    },
    Layer { folder: "tools", crates: &["cli", "laboratory", "top", "orchestra", "stacks", "lab", "xtask", "measure"] },
    Layer { folder: "examples", crates: &[] },
    Layer { folder: "tests", crates: &[] },
];

/// The position of a package: its layer from below, and its position in that from the left.
pub(crate) fn position(folder: &str) -> Option<(usize, usize)> {
    let (layer, name) = folder.split_once('/').unwrap_or((folder, ""));
    let height = LAYERS.iter().position(|other| other.folder == layer)?;
    let crates = LAYERS[height].crates;
    let across = if crates.is_empty() { 0 } else { crates.iter().position(|other| *other == name)? };
    Some((height, across))
}

/// Returns a complaint for each package without a position and each dependency that does not point down or
/// right.
pub(crate) fn complaints(packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in packages {
        let Some(from) = position(&package.folder) else {
            complaints
                .push(format!("{} has no place in the layers (tools/xtask/src/structure/layers.rs)", package.folder));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.is_for_tests) {
            let Some(other) = packages.iter().find(|other| other.name == dependency.package) else { continue };
            let Some(to) = position(&other.folder) else { continue }; // has a complaint of its own
            let is_free = from.0 == to.0 && LAYERS[from.0].crates.is_empty();
            if !(to.0 < from.0 || to.0 == from.0 && to.1 > from.1 || is_free) {
                complaints.push(format!(
                    "{} must not depend on {}: dependencies point down, and right inside a layer",
                    package.folder, other.folder
                ));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(folder: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependency = |(package, is_for_tests): &(&str, bool)| Dependency {
            package: (*package).to_owned(),
            rename: None,
            is_for_tests: *is_for_tests,
        };
        let dependencies = dependencies.iter().map(dependency).collect();
        Package { name: folder.to_owned(), folder: folder.to_owned(), dependencies, ..Package::default() }
    }

    #[test]
    fn dependencies_point_down_and_right() {
        let good = [
            package("net/ipc", &[("net/sync", false), ("tests/support", true)]),
            package("net/sync", &[]),
            package("orb/core", &[("orb/cdr", false), ("net/ipc", false)]),
            package("orb/cdr", &[]),
            package("tests/support", &[("spandrel", false)]),
            package("tests/orb", &[("tests/support", false)]),
            package("spandrel", &[("orb/core", false)]),
        ];
        assert_eq!(complaints(&good), [""; 0]);
        let bad = [
            package("net/sync", &[("orb/cdr", false)]),
            package("orb/cdr", &[("orb/core", false)]),
            package("orb/core", &[]),
            package("orb/unheard", &[]),
        ];
        assert_eq!(complaints(&bad).len(), 3);
    }
}
