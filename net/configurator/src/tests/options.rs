//! The options of a command line.

use crate::{OptionError, Options};

fn parse(arguments: &[&str]) -> Result<(Options, Vec<String>), OptionError> {
    Options::parse(arguments.iter().map(|argument| (*argument).to_owned()))
}

#[test]
fn options_are_those_of_ace() {
    let (options, rest) = parse(&[
        "-bd", "-f", "a.conf", "-fb.conf", "-S", "static X", "-y", "-p", "pid", "-s1", "-k", "h:1", "file", "-ORBx",
    ])
    .unwrap();
    let expected = Options {
        files: vec!["a.conf".into(), "b.conf".into()],
        directives: vec!["static X".into()],
        starts_static_services: true,
        is_daemon: true,
        is_debug: true,
        pid_file: Some("pid".into()),
        signal: Some(1),
        logger_key: Some("h:1".into()),
    };
    assert_eq!(options, expected);
    assert_eq!(rest, ["file", "-ORBx"]);
    assert!(!parse(&["-yn"]).unwrap().0.starts_static_services);
    assert_eq!(parse(&["--", "-f"]).unwrap().1, ["-f"]);
}

#[test]
fn wrong_options_are_refused() {
    assert_eq!(parse(&["-f"]).unwrap_err().to_string(), "the option -f needs an argument");
    let text = "invalid value \"HUP\" for -s: expected the number of a signal";
    assert_eq!(parse(&["-s", "HUP"]).unwrap_err().to_string(), text);
    for key in ["nowhere", "host:", ":1", "host:x", "host:65536", ""] {
        let text = format!("invalid value \"{key}\" for -k: expected HOST:PORT");
        assert_eq!(parse(&["-k", key]).unwrap_err().to_string(), text);
    }
    assert_eq!(parse(&["-k", "[::1]:4"]).unwrap().0.logger_key.as_deref(), Some("[::1]:4"));
}
