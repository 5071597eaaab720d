//! The executable: its options, exit codes and messages.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use spandrel_test_support::{ChildProcess, check_output_errors, http_exchange, http_request};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spandrel-proxy")).args(arguments).output().expect("the executable starts")
}

/// Checks the exit code and a part of the message.
#[track_caller]
fn refuses(arguments: &[&str], code: i32, part: &str) {
    let output = run(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    assert!(text.contains(part), "{arguments:?}: {text}");
}

#[test]
fn nothing_is_served_by_default() {
    refuses(&[], 2, "nothing is served: --expose NAME or --exposures FILE");
    refuses(&["--expose", "a"], 2, "no client could identify itself: --tokens FILE");
    refuses(&["--expose", "a", "--anonymous", "--listen", "0.0.0.0:0"], 2, "--anonymous needs a loopback address");
    refuses(&["--expose", "a", "--anonymous"], 1, "there is no naming service: --orb '-ORBInitRef NameService=");
}

#[test]
fn bad_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        path.display().to_string()
    };
    let absent = folder.path().join("absent").display().to_string();
    refuses(&["--exposures", &absent], 2, "cannot read");
    let config = file("bad.toml", "[[expose]]\nnames = 7\n");
    refuses(&["--exposures", &config], 2, "bad.toml (--exposures) is malformed: line 2: unknown field `names`");
    refuses(&["--expose", "a", "--tokens", &absent], 2, "cannot read the tokens in");
    let short = file("short.txt", "# names\nalice short\n");
    refuses(&["--expose", "a", "--tokens", &short], 2, "short.txt:2: expected a name, a blank, and a token");
    let tokens = file("tokens.txt", "alice 0123456789abcdef0123\n");
    refuses(&["--expose", "a", "--tokens", &tokens, "--idl", &absent], 2, "cannot use the IDL file");
    refuses(&["--expose", "a", "--tokens", &tokens, "--policy", &absent], 5, "--policy");
    #[cfg(unix)]
    {
        fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        refuses(&["--expose", "a", "--tokens", &tokens], 2, "can be read by every user");
    }
    let name_service = "-ORBInitRef NameService=corbaloc::127.0.0.1:9/NameService";
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refuses(&["--expose", "a", "--anonymous", "--orb", name_service, "--listen", &address], 3, "cannot listen at");
    let certificate = ["--http-cert", &absent, "--http-key", &absent];
    let base = ["--expose", "a", "--anonymous", "--orb", name_service, "--listen", "127.0.0.1:0"];
    refuses(&[&base[..], &certificate[..]].concat(), 1, "cannot read the certificates in");
}

/// Without tokens, a page of another site could use a name of its own for this machine (DNS rebinding).
#[test]
fn an_anonymous_proxy_is_not_addressed_as_another_host() {
    let options = ["--expose", "a", "--anonymous", "--listen", "127.0.0.1:0"];
    let naming = ["--orb", "-ORBInitRef NameService=corbaloc::127.0.0.1:9/NameService"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-proxy"));
    let mut proxy = ChildProcess::start(command.args(options).args(naming).stdout(Stdio::piped()));
    let mut ready = String::new();
    BufReader::new(proxy.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    #[cfg(target_os = "linux")]
    spandrel_test_support::threads::check_daemon(proxy.id());
    let address = ready.trim_end().strip_prefix("ready: proxy http://").expect("it is ready").trim_end_matches('/');
    let status = |host: &str| {
        let request = http_request("GET /healthz", &format!("Host: {host}\r\n"), "");
        http_exchange(address, &request).unwrap().status
    };
    let port = address.rsplit(':').next().unwrap();
    let [own, local] = [status(address), status(&format!("localhost:{port}"))];
    let foreign = ["evil.example".to_owned(), format!("evil.example:{port}"), "localhost".to_owned()];
    let refused = foreign.map(|host| status(&host));
    assert_eq!([own, local], [200, 200]);
    assert_eq!(refused, [421, 421, 421]);
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    for words in [["--help"], ["--version"]] {
        check_output_errors(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-proxy"));
            command.args(words);
            command
        });
    }
}
