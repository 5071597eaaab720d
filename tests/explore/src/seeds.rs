//! Initial inputs for fuzzing, made from files of the tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::workspace;

/// Writes the seeds of a target into a folder of its own and returns it.
pub(crate) fn write(target: &str) -> Result<PathBuf> {
    let folder = workspace::target().join("fuzz-seeds").join(target);
    // Seeds of an earlier run may be of deleted files.
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for (name, octets) in seeds(target)? {
        let path = folder.join(name);
        fs::write(&path, octets).with_context(|| path.display().to_string())?;
    }
    Ok(folder)
}

fn seeds(target: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let golden = workspace::root().join("orb/giop/tests/golden");
    let mut seeds = Vec::new();
    match target {
        "giop_message" | "cdr_decode" => {
            for (name, text) in texts(&golden, "hex")? {
                let octets: Vec<u8> = hex_lines(&text).collect();
                seeds.push((name, if target == "giop_message" { octets } else { values(&octets) }));
            }
        }
        "giop_cut" => {
            for (nth, (name, text)) in texts(&golden, "hex")?.into_iter().enumerate() {
                // Both orders, each version, and replies; a limit; the message as a body.
                let head = [(nth as u8 % 8) | (8 * (nth as u8 % 5)), 64 + nth as u8, nth as u8 % 3];
                seeds.push((name, head.into_iter().chain(hex_lines(&text)).collect()));
            }
        }
        "giop_ior" => {
            for (name, text) in texts(&golden, "ior")? {
                seeds.extend(text.lines().find(|line| line.starts_with("IOR:")).map(|line| (name, line.into())));
            }
            seeds.push(("corbaloc".into(), b"corbaloc:iiop:1.2@host:2809,:[::1]:1/NameService%20x".to_vec()));
            seeds.push(("rir".into(), b"corbaloc:rir:/NameService".to_vec()));
        }
        "giop_parts" => {
            // Whole messages for datagrams; their bodies for the other readers.
            for (nth, (name, text)) in texts(&golden, "hex")?.into_iter().enumerate() {
                let octets: Vec<u8> = hex_lines(&text).collect();
                seeds.push((format!("{name}-datagram"), [&[2], &octets[..]].concat()));
                let body = octets.get(12..).unwrap_or_default();
                seeds.push((name, [&[nth as u8 % 16], body].concat()));
            }
            // A host and a port, in an encapsulation: a listen point, an alternate address, and others to
            // start from.
            for kind in 0..16 {
                seeds.push((
                    format!("place-{kind}"),
                    [&[kind][..], b"\x01\0\0\0\x01\0\0\0\x02\0\0\0h\0\x02\x01"].concat(),
                ));
            }
        }
        "settings" => seeds.extend(settings()),
        "differential" => {
            // Golden octets, as values of types that the octets before them select.
            for (nth, (name, text)) in texts(&golden, "hex")?.into_iter().enumerate() {
                let head = [8, nth as u8, 0].into_iter().chain((0..8).map(|at| (nth * 37 + at * 11) as u8));
                seeds.push((name, head.chain(hex_lines(&text)).collect()));
            }
        }
        "any" => {
            let anys = fs::read_to_string(workspace::root().join("orb/cdr/tests/golden/anys.txt"))?;
            for (number, line) in anys.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
                let Some((order, hex)) = line.split_once(' ').and_then(|(_, rest)| rest.split_once(' ')) else {
                    continue;
                };
                // GIOP 1.2 in this order, at the start.
                let head = [4 | u8::from(order == "little"), 0];
                seeds.push((format!("any-{number}"), head.into_iter().chain(hex_lines(hex)).collect()));
            }
        }
        "idl" => {
            for folder in ["tests/interop/idl", "tools/lab/idl", "orb/idl/tests", "orb/build/tests", "examples"] {
                let idl_files = texts(&workspace::root().join(folder), "idl")?;
                seeds.extend(idl_files.into_iter().map(|(name, text)| (name, text.into_bytes())));
            }
        }
        _ => {}
    }
    Ok(seeds)
}

/// One of each text that is parsed; the first octet selects the parser.
fn settings() -> Vec<(String, Vec<u8>)> {
    let texts = [
        (0, "GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"),
        (0, "HEAD / HTTP/1.0\r\n\r\n"),
        (1, "iiop://host:2809/portspan=10,publish=nat.example:9999"),
        (1, "giop:tcp:[::1]:0"),
        (1, "uds:///tmp/socket"),
        (2, "thread-pool:4:100"),
        (2, "leader-followers:3"),
        (3, "60:5:3"),
        (4, "UTF-8"),
        (5, "UTF-16"),
        (6, "-123.4500"),
        (7, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\nrojo=00f067aa0ba902b7"),
    ];
    let seed = |(nth, (kind, text)): (usize, (u8, &str))| (format!("text-{nth}"), [&[kind], text.as_bytes()].concat());
    texts.into_iter().enumerate().map(seed).collect()
}

/// The files below a folder with this extension; none if there is no such folder.
fn texts(folder: &Path, extension: &str) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return Ok(files) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.append(&mut texts(&path, extension)?);
        } else if path.extension().is_some_and(|e| e == extension) {
            let octets = fs::read(&path).with_context(|| path.display().to_string())?;
            let name =
                path.strip_prefix(workspace::root()).unwrap_or(&path).display().to_string().replace(['/', '\\'], "-");
            files.push((name, String::from_utf8_lossy(&octets).into_owned()));
        }
    }
    Ok(files)
}

/// The octets in a golden file: its lines that have only hexadecimal digits.
fn hex_lines(text: &str) -> impl Iterator<Item = u8> {
    let is_hex = |line: &&str| !line.is_empty() && line.bytes().all(|b| b.is_ascii_hexdigit());
    let pairs = text.lines().filter(is_hex).flat_map(|line| line.as_bytes().chunks(2));
    pairs.filter_map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
}

/// A seed for values: the first octet selects the type, the second order and version; the message's octets
/// follow.
fn values(octets: &[u8]) -> Vec<u8> {
    let (kind, wire) = (octets.len() as u8, octets.get(6).copied().unwrap_or(0) & 1 | 4);
    [&[kind, wire], octets].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_files_are_seeds() {
        let seeds = seeds("giop_message").unwrap();
        assert!(seeds.len() > 50, "{}", seeds.len());
        assert!(seeds.iter().all(|(_, octets)| octets.starts_with(b"GIOP")));
        assert!(super::seeds("giop_ior").unwrap().len() > 3);
        assert!(super::seeds("giop_cut").unwrap().len() > 50);
        assert!(super::seeds("any").unwrap().len() > 80);
        assert!(["giop_parts", "differential"].iter().all(|target| super::seeds(target).unwrap().len() > 50));
        assert!(super::seeds("settings").unwrap().len() > 8);
        assert!(!super::seeds("idl").unwrap().is_empty());
    }

    #[test]
    fn only_lines_of_digits_are_octets() {
        let octets: Vec<u8> = hex_lines("# 00\nfrom=client\n47 49\n47494f50\nff\n").collect();
        assert_eq!(octets, b"GIOP\xff");
    }
}
