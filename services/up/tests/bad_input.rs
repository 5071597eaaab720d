//! Bad input: one line, with the reason and the option to change, and an exit code.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use crate::executable::ANY_PORT;
use crate::running::{Running, command};

#[test]
fn bad_input_has_one_line_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).display().to_string();
    fs::write(path("file"), "").unwrap();
    fs::write(path("broken.toml"), "[[rule]]\naction = \"permit\"\n").unwrap();
    fs::write(path("binary.toml"), [0xff, 0xfe, 0x00]).unwrap();
    fs::write(path("good.toml"), "[[rule]]\naction = \"allow\"\n").unwrap();
    fs::create_dir(path("damaged")).unwrap();
    fs::write(path("damaged/naming.redb"), "no database").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (endpoint, metrics) = (format!("iiop://127.0.0.1:{port}"), format!("-ORBMetricsEndpoint 127.0.0.1:{port}"));
    let (used, unused, below) = (path("used"), path("unused"), path("file/data"));
    let _running = Running::start(&used, &ANY_PORT);
    let (broken, binary, good) = (text("broken.toml"), text("binary.toml"), text("good.toml"));
    let (audit, site) = (text("none/audit.log"), text("site.toml"));
    fs::write(&site, "[sites.plant]\npolicy = \"none.toml\"\n").unwrap();

    let cases: &[(&Path, &[&str], i32, &[&str])] = &[
        (&unused, &["--no-such"], 2, &["--no-such"]),
        (&unused, &["word"], 2, &["word"]),
        (&unused, &["--orb", "-ORBNoSuch yes"], 2, &["-ORBNoSuch"]),
        (&unused, &["--orb", "-ORBMetrics"], 2, &["--orb", "-ORBMetrics"]),
        (&unused, &["--orb", "-ORBMetrics maybe"], 2, &["-ORBMetrics", "maybe", "yes or no"]),
        (&unused, &["--listen", "nonsense"], 2, &["nonsense", "iiop://host:port"]),
        (&unused, &["--cert", "none.pem", "--key", "none.pem"], 2, &["cannot read none.pem", "No such file"]),
        (&unused, &["--audit", "audit.log"], 2, &["--policy"]),
        (&unused, &["--commands", "none.toml"], 2, &["none.toml", "No such file"]),
        (&unused, &["--purge-unreachable"], 2, &["--purge"]),
        (
            &unused,
            &["--config", &site, "--site", "plan"],
            2,
            &["site.toml: it has no site `plan`: did you mean `plant`?"],
        ),
        (&unused, &["--config", &site, "--site", "plant"], 5, &["none.toml", "No such file", "--policy"]),
        (&unused, &["--listen", &endpoint], 3, &["cannot listen (--listen)", &endpoint, "in use"]),
        (&unused, &["--orb", &metrics], 3, &["metrics endpoint", "in use"]),
        (&used, &[], 4, &["is in use by another process (--data)", "name another folder"]),
        (&below, &[], 4, &["cannot create the data folder", "(--data)", "Not a directory"]),
        (&path("file"), &[], 4, &["data folder", "(--data)"]),
        (&path("damaged"), &[], 4, &["naming.redb"]),
        (&unused, &["--policy", "none.toml"], 5, &["none.toml", "No such file", "--policy"]),
        (&unused, &["--policy", &broken], 5, &["broken.toml:2:10", "unknown action `permit`", "expected `allow`"]),
        (&unused, &["--policy", &binary], 5, &["binary.toml", "UTF-8"]),
        (&unused, &["--policy", &good, "--audit", &audit], 1, &["audit.log", "No such file", "--audit"]),
    ];
    for (data, words, code, texts) in cases {
        let mut command = command(data);
        if !words.contains(&"--listen") {
            command.args(ANY_PORT);
        }
        command.env("SPANDREL_LOG", "error"); // the port is not fixed, of which servers warn
        let output = command.args(*words).stdout(Stdio::null()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(*code), "{words:?}: {errors}");
        assert!(errors.starts_with("error: "), "{words:?}: {errors}");
        assert!(texts.iter().all(|text| errors.contains(text)), "{words:?}: {errors}");
        // Errors of usage have a hint below, as in all commands.
        assert!(*code == 2 || errors.lines().count() == 1, "{words:?}: {errors}");
    }
}
