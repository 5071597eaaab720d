//! Scripts: that of the paper, exceptions, other interfaces, and limits.

use std::path::Path;

use spandrel::{Endpoint, Orb};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};

use crate::running::{Site, orchestra, output, text};

/// A part of the naming service.
const NAMES: &str = "#pragma prefix \"omg.org\"
module CosNaming {
  struct NameComponent { string id; string kind; };
  typedef sequence<NameComponent> Name;
  interface NamingContext { exception InvalidName {}; void destroy(); };
  interface NamingContextExt : NamingContext { string to_string(in Name n) raises (InvalidName); };
};
";
const PAPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/paper.rhai");

fn script(site: &Site, file: impl AsRef<Path>, words: &[&str]) -> std::process::Output {
    output(orchestra().arg("script").arg(file.as_ref()).args(words).args(["--naming", &site.naming]))
}

#[test]
fn the_papers_script_runs() {
    let site = Site::new();
    let (_server, _load) = (site.agent("bobsdell"), site.agent("starship"));
    let done = script(&site, PAPER, &["starship", "bobsdell", "test steady", "60"]);
    assert!(done.status.success(), "{}", text(&done));
    let line = text(&done);
    assert!(line.starts_with("60 requests in 0.") && line.contains(", 0 failed; usage: "), "{line}");
    let refused = script(&site, PAPER, &["starship", "bobsdell", "/bin/sh", "60"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("/bin/sh cannot be started"), "{}", text(&refused));
}

#[test]
fn a_script_without_an_argument_that_it_needs_says_which() {
    let site = Site::new();
    let wrong = |file: &Path, words: &[&str], expected: &str| {
        let done = script(&site, file, words);
        assert_eq!(done.status.code(), Some(2), "{}", text(&done));
        assert!(text(&done).contains(expected), "`{expected}` is missing in: {}", text(&done));
    };
    let needs = |number: usize, line: usize| format!("needs argument {number} (ARGS[{}], line {line}", number - 1);
    wrong(Path::new(PAPER), &[], &needs(1, 2));
    let later = site.write("later.rhai", "let one = 1;\n/* \u{e9} */ let number = ARGS [ 1 ];");
    wrong(&later, &["x"], &needs(2, 2));
    for time in ["xx", "5", "0s", ""] {
        let expected =
            format!("invalid value '{time}' for '--timeout <TIME>': expected a time with its unit, such as 90s");
        wrong(&later, &["--timeout", time], &expected);
    }
    // An index of another array is an error of the script.
    let other = site.write("other.rhai", "let numbers = [1]; print(numbers[ARGS.len()])");
    assert_eq!(script(&site, &other, &["x"]).status.code(), Some(1));
}

#[test]
fn the_papers_script_has_nine_lines() {
    let script = std::fs::read_to_string(PAPER).unwrap();
    assert_eq!(script.lines().filter(|line| !line.starts_with("//")).count(), 9);
}

#[test]
fn exceptions_structures_and_enumerators_are_values() {
    let site = Site::new();
    let _agent = site.agent("alpha");
    let text_of_script = r#"
        let harness = get_handle("orchestrator/servers/alpha/Harness");
        try { harness.start_server(#{ name: "sh", architecture: "-c", workers: 0, greeting: true }, []); }
        catch (error) { print(error); }
        let at = harness.start_server(#{ name: "test", architecture: "steady", workers: 0, greeting: true }, []);
        let team = get_handle("/orchestrator/clients/alpha/WorkTeam");
        let size = #{ kind: "CONSTANT", mean: 100, spread: 0 };
        let load = #{ target: at.listens_at, requests: 20, seconds: 0.0, workers: 2, arrival: "CLOSED", rate: 0, size: size,
                      think_time: #{ kind: "UNIFORM", mean: 0.001, spread: 0.001 }, greeting: true, timeout: 5, seed: 1 };
        team.begin(load);
        let outcome = team.take_result(30);
        print(`${outcome.result} ${outcome.outcome.answered} ${outcome.outcome.times.p50 > 0}`);
        print(outcome.keys());
        print(get_handle(harness.to_string()).list_commands()[0].version);
        harness.stop_server(0, 5);
        try { invoke(harness, "stop_server", [0, 5]); } catch (error) { print(error); }
        try { harness.reboot(); } catch (error) { print(error); }
        print(mean([1, 2.0, 6]) + deviation([1, 3]));
    "#;
    let file = site.write("values.rhai", text_of_script);
    let done = script(&site, file, &[]);
    assert!(done.status.success(), "{}", text(&done));
    let shown = text(&done);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains("Orchestra/Refused") && lines[0].contains("no command `sh`"), "{shown}");
    assert_eq!(lines[1..4], ["true 20 true", "[\"outcome\", \"result\"]", "test server 1.2.3"]);
    assert!(lines[4].contains("Orchestra/NoServer"), "{shown}");
    assert!(lines[5].contains("reboot"), "{shown}");
    assert!(lines[6].starts_with("4.41"), "{shown}");
}

#[test]
fn a_pause_that_is_no_time_or_too_long_is_an_error_of_the_script() {
    let site = Site::new();
    for (pause, shown) in [
        ("1e300", "1e300"),
        ("-0.5", "-0.5"),
        ("-1", "-1.0"),
        ("0.0 / 0.0", "NaN"),
        ("86401", "86401.0"),
        ("9223372036854775807", "9.223372036854776e18"),
    ] {
        let file = site.write("pause.rhai", &format!("sleep({pause});"));
        let done = script(&site, &file, &[]);
        assert_eq!(done.status.code(), Some(1), "{}", text(&done));
        let expected = format!("a pause of {shown} s is not from 0 s to a day");
        assert!(text(&done).contains(&expected), "`{expected}` is missing in: {}", text(&done));
        assert_eq!(text(&done).lines().count(), 1, "{}", text(&done));
    }
    let caught = "sleep(0); sleep(0.001); sleep(1e-320); try { sleep(-1.0); } catch (error) { print(error); }";
    let done = script(&site, site.write("pause.rhai", caught), &[]);
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(text(&done), "a pause of -1.0 s is not from 0 s to a day\n");
}

#[test]
fn other_interfaces_come_from_idl_files_or_an_interface_repository() {
    let site = Site::new();
    let idl = site.write("names.idl", NAMES);
    let idl = idl.to_str().unwrap();
    let file = site.write("names.rhai", "print(get_handle(ARGS[0]).to_string([#{ id: \"a/b\", kind: \"c\" }]))");
    let wrong =
        site.write("wrong.idl", "interface Wrong {\n  void first(in Strin text);\n  void second(in Strin text);\n};");
    let refused = script(&site, &file, &[&site.naming, "-I", wrong.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let wrong = wrong.display();
    let expected = format!("error: cannot use {wrong} (-I): {wrong}:2:17: `Strin` is not defined; 1 more error\n");
    assert_eq!(text(&refused), expected);
    // A URL has no type, so that the object is asked for it.
    let described = script(&site, &file, &[&site.naming, "-I", idl]);
    assert_eq!(text(&described), "a\\/b.c\n");
    let unknown = script(&site, &file, &[&site.naming]);
    assert!(text(&unknown).contains("no -I file declares an interface of the object"), "{}", text(&unknown));

    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let repository = InterfaceRepository::start(&orb, RepositoryOptions::new(site.folder.path())).unwrap();
    let model = spandrel::dynamic::describe_file(idl, []).unwrap();
    let filled = spandrel::services::repository::fill(repository.reference(), &model);
    assert!(filled.is_ok(), "{filled:?}");
    let option = format!("-ORBInitRef InterfaceRepository={}", repository.reference());
    let object = site.service.reference().to_string();
    let described = script(&site, &file, &[&object, "--orb", &option]);
    assert_eq!(text(&described), "a\\/b.c\n");
    repository.stop().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn a_script_without_an_end_is_ended() {
    let site = Site::new();
    let endless = site.write("endless.rhai", "loop { }");
    let done = script(&site, endless, &["--max-operations", "10000"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done).contains("Too many operations"), "{}", text(&done));
    // Steps are no time: a pause is one step.
    let text_of = text;
    for text in ["sleep(3000)", "try { sleep(3000) } catch { sleep(3000) }", "loop { }"] {
        let slow = site.write("slow.rhai", text);
        let done = script(&site, slow, &["--max-time", "300ms", "--max-operations", "0"]);
        assert_eq!(done.status.code(), Some(1), "{text}");
        assert!(text_of(&done).contains("did not end within 300ms (--max-time)"), "{text}: {}", text_of(&done));
    }
    let wrong = site.write("wrong.rhai", "let = 1;");
    let done = script(&site, wrong, &[]);
    assert!(text(&done).contains("wrong.rhai") && text(&done).contains("line 1"), "{}", text(&done));
    let import = site.write("import.rhai", "import \"other\" as other;");
    assert!(!script(&site, import, &[]).status.success());
}
