//! The HTTP server with `curl` as its client.

use std::fs;
use std::process::Command;

use crate::support::Running;

/// Runs `curl`, and returns its output.
fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["--silent", "--show-error", "--max-time", "30"]).args(arguments).output();
    let output = output.expect("curl is installed");
    assert!(output.status.success(), "curl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn curl_gets_files_parts_and_refusals_over_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "abcdefgh").unwrap();
    let upload = folder.path().join("upload");
    fs::write(&upload, vec![b'x'; 200_000]).unwrap();
    let server = Running::start(&["leader-followers", "--http", folder.path().to_str().unwrap()]);
    let url = format!("http://{}/a.txt", server.address);
    // Two requests, one connection.
    assert_eq!(curl(&["--write-out", "%{num_connects};", &url, &url]), "abcdefgh1;abcdefgh0;");
    assert_eq!(curl(&["--range", "2-4", &url]), "cde");
    let code = ["--output", "/dev/null", "--write-out", "%{http_code}"];
    let status = |arguments: &[&str]| curl(&[&code[..], arguments].concat());
    assert_eq!(status(&[&url]), "200");
    assert_eq!(status(&["--head", &url]), "200");
    assert_eq!(status(&["--time-cond", &humantime_of(&folder), &url]), "304");
    assert_eq!(status(&["--data-binary", &format!("@{}", upload.display()), &url]), "405");
    assert_eq!(status(&["--path-as-is", &format!("http://{}/../etc/passwd", server.address)]), "400");
    assert_eq!(status(&["--http1.0", &url]), "200");
    assert_eq!(status(&[&format!("http://{}/absent", server.address)]), "404");
    server.terminate();
}

/// The time of the file's last change, as curl understands it.
fn humantime_of(folder: &tempfile::TempDir) -> String {
    let modified = fs::metadata(folder.path().join("a.txt")).unwrap().modified().unwrap();
    httpdate::fmt_http_date(modified)
}
