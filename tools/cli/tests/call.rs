//! `spandrel call`: a call of an object, with the interface from an IDL file.

use crate::support;

#[cfg(unix)]
use std::process::{Command, Stdio};

#[cfg(unix)]
use assert_cmd::cargo::CommandCargoExt as _;
#[cfg(unix)]
use spandrel_test_support::{ChildProcess, wait_until};
use support::bank::{Bank, Certificates};
use support::{check_code, spandrel, spandrel_with_input, stderr, stdout};

impl Bank {
    fn call(&self, words: &[&str]) -> std::process::Output {
        let file = self.file.to_str().unwrap();
        spandrel(&[&["call", "--idl", file, &self.reference], words].concat())
    }

    #[track_caller]
    fn says(&self, words: &[&str], expected: &str) {
        let output = self.call(words);
        check_code(&output, 0);
        assert_eq!(stdout(&output), expected, "{words:?}");
    }

    #[track_caller]
    fn fails(&self, words: &[&str], expected: &str) {
        self.ends(words, 1, expected);
    }

    fn ends(&self, words: &[&str], code: i32, expected: &str) {
        let output = self.call(words);
        check_code(&output, code);
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn operations_are_called_with_values_as_text() {
    let bank = Bank::open();
    bank.says(&["deposit", "5", "for rent"], "105\nnote: \"FOR RENT\"\nall: [{what: \"for rent\", amount: 5}]\n");
    bank.says(&["owner"], "\"Ada \\\"A.\\\" L.\"\n");
    bank.says(&["sort"], "saving\n");
    bank.says(&["sort", "checking"], "");
    bank.says(&["nothing"], "");
    bank.says(&["hint", "saving"], "");
    bank.says(&["echo", "-2.5"], "-2.5\n");
    bank.says(&["echo", "--", "-Infinity"], "-Infinity\n");
    bank.says(&["echo", "7", "--json"], "{\"result\":{\"_type\":\"long\",\"_value\":7},\"out\":{}}\n");
}

#[test]
fn a_denied_call_names_the_operation() {
    let bank = Bank::under_policy("[[rule]]\naction = \"allow\"\noperation = [\"nothing\", \"_get_owner\"]\n");
    let denied = |operation: &str| format!("`{operation}` is denied to a caller without a verified identity");
    bank.says(&["nothing"], "");
    bank.fails(&["deposit", "5", "for rent"], &denied("deposit"));
    bank.fails(&["sort", "checking"], &denied("_set_sort"));
    // Without IDL, the interface is looked up first.
    let output = spandrel(&["call", &bank.reference, "nothing"]);
    check_code(&output, 1);
    assert!(stderr(&output).contains(&denied("_interface")), "{}", stderr(&output));
}

/// A derived value where its base is declared, cyclic values, and abstract interfaces.
#[test]
fn values_are_parsed_and_shown_with_their_types() {
    let bank = Bank::open();
    let again = |operation: &str, value: &str| bank.says(&[operation, value], &format!("{value}\n"));
    again("keep", "null");
    again("keep", r#"{_type: "IDL:Bank/Urgent:1.0", text: "now", next: {text: "then", next: null}, days: 1}"#);
    again("keep", r#"{_id: 1, text: "turn", next: {text: "and", next: {_ref: 1}}}"#);
    again("pass", "null");
    again("pass", &bank.reference);
    again("pass", r#"{_type: "IDL:Bank/Note:1.0", text: "either", next: null}"#);
    bank.fails(&["pass", r#"{text: "either", next: null}"#], "`_type` is needed for the type of");
    bank.fails(&["keep", "{_ref: 1}"], "no earlier value has `_id: 1`");
}

#[test]
fn an_uncallable_operation_is_reported_with_its_reason() {
    let bank = Bank::open();
    let output = bank.call(&[]);
    check_code(&output, 0);
    assert!(stdout(&output).contains("// open_with cannot be called: "), "{}", stdout(&output));
    bank.fails(&["open_with", "x"], "`open_with` of `IDL:Bank/Account:1.0` cannot be called: ");
}

#[test]
fn callable_operations_are_listed() {
    let bank = Bank::open();
    let output = bank.call(&[]);
    check_code(&output, 0);
    let text = stdout(&output);
    for line in [
        "readonly attribute string owner",
        "attribute Kind sort",
        "long long deposit(in long long amount, inout string note, out Entries all) raises (Broke)",
        "void nothing()",
        "oneway void hint(in Kind how)",
        "any echo(in any what)",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("_get_"), "{text}");
    let listing = json(&bank.call(&["--json"]));
    assert_eq!(listing["interface"], "IDL:Bank/Account:1.0");
    assert_eq!(listing["attributes"][0]["name"], "owner");
    assert_eq!(listing["attributes"][0]["readonly"], true);
    let operations = listing["operations"].as_array().unwrap();
    let deposit = operations.iter().find(|operation| operation["name"] == "deposit").unwrap();
    assert_eq!(deposit["raises"], serde_json::json!(["IDL:Bank/Broke:1.0"]));
    assert_eq!(deposit["parameters"][1], serde_json::json!({"name": "note", "mode": "inout", "type": "string"}));
    assert_eq!(listing["not_callable"][0]["name"], "open_with");
}

#[test]
fn call_errors_name_their_reason() {
    let bank = Bank::open();
    bank.fails(&["deposit", "-7", "x"], "the operation raised `IDL:Bank/Broke:1.0` {missing: -7}");
    bank.fails(&["deposit", "5"], "takes 2 arguments, not 1");
    bank.fails(&["echo"], "takes 1 argument, not 0");
    bank.fails(&["deposit", "five", "x"], "invalid value `five` for `amount`: expected long long");
    bank.fails(&["deposit", "five", "x"], "`five` is not an integer of this type");
    bank.fails(&["echo", "1e309"], "`1e309` is out of range for `double`");
    bank.fails(&["withdraw"], "no operation or attribute `withdraw`");
    bank.fails(&["desposit", "5"], "no operation or attribute `desposit`: did you mean `deposit`?");
    bank.fails(&["Owner"], "did you mean `owner`?");
    bank.fails(&["owner", "Bob"], "`owner` of `IDL:Bank/Account:1.0` is a readonly attribute");
    bank.fails(&["--interface", "Bank::Other", "nothing"], "no interface `Bank::Other`");
    bank.fails(
        &["--interface", "Bank::Acount", "nothing"],
        "does not declare `Bank::Acount`: did you mean `Bank::Account`?",
    );
    bank.fails(&["--ca", "nosuch.pem", "nothing"], "error: cannot read nosuch.pem: No such file or directory\n");
    bank.ends(&["--orb", "-ORBTransport uds", "nothing"], 2, "`-ORBTransport` is not an ORB option");
    bank.ends(&["--orb", "uds", "nothing"], 2, "expected an option and its value");
}

/// The JSON that a command prints.
#[track_caller]
fn json(output: &std::process::Output) -> serde_json::Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

#[test]
fn results_and_exceptions_are_printed_as_json() {
    let bank = Bank::open();
    let done = json(&bank.call(&["--json", "deposit", "5", "for rent"]));
    let expected = serde_json::json!({
        "result": 105,
        "out": { "note": "FOR RENT", "all": [{ "what": "for rent", "amount": 5 }] },
    });
    assert_eq!(done, expected);
    assert_eq!(json(&bank.call(&["--json", "nothing"])), serde_json::json!({ "out": {} }));
    let output = bank.call(&["--json", "deposit", "-7", "x"]);
    check_code(&output, 1);
    let raised = json(&output);
    assert_eq!(raised["exception"], serde_json::json!({ "id": "IDL:Bank/Broke:1.0", "members": { "missing": -7 } }));
    assert!(raised["error"].as_str().unwrap().contains("the operation raised"), "{raised}");
    let output = bank.call(&["--json", "deposit", "x", "x"]);
    check_code(&output, 1);
    assert_eq!(json(&output)["error"], "invalid value `x` for `amount`: expected long long");
    let file = bank.file.to_str().unwrap();
    let refused = ["call", "--idl", file, "--json", "--interface", "Bank::Account", "corbaloc::127.0.0.1:1/x", "sort"];
    let output = spandrel(&refused);
    check_code(&output, 1);
    assert_eq!(json(&output)["system_exception"]["id"], "IDL:omg.org/CORBA/TRANSIENT:1.0");
    // The printed form is accepted as an argument.
    let value = serde_json::json!({ "_type": "Bank::Entry", "_value": { "what": "w", "amount": "9007199254740993" } });
    let echoed = json(&bank.call(&["--json", "echo", &value.to_string()]))["result"].clone();
    assert_eq!(echoed["_value"], value["_value"]);
    assert_eq!(json(&bank.call(&["--json", "echo", &echoed.to_string()]))["result"], echoed);
}

#[test]
fn anys_of_the_types_of_the_idl_are_arguments() {
    let bank = Bank::open();
    let echo = |text: &str, expected: &str| bank.says(&["echo", text], &format!("{expected}\n"));
    echo("short 3", "short 3");
    echo("sequence<long> [1, 2]", "sequence<long> [1, 2]");
    echo("Bank::Entry {what: \"x\", ..}", "Bank::Entry {what: \"x\", amount: 0}");
    echo("Bank::Entries [{..}]", "Bank::Entries [{what: \"\", amount: 0}]");
    echo("Bank::Kind saving", "Bank::Kind saving");
    bank.fails(&["echo", "Bank::Entri {}"], "unknown type `Bank::Entri`");
    bank.fails(&["echo", "[1]"], "write it before the value");
}

/// A `corbaloc:` names no type.
#[test]
fn the_file_of_an_interface_may_stand_behind_include() {
    let bank = Bank::open();
    let (file, folder) = (bank.file.to_str().unwrap(), bank.file.parent().unwrap().to_str().unwrap());
    let output = spandrel(&["call", "-I", file, "-I", folder, &bank.reference, "deposit", "5", "x"]);
    check_code(&output, 0);
    assert!(stdout(&output).starts_with("105\n"));
    bank.ends(&["-I", "missing.idl", "owner"], 2, "missing.idl");
    let output = spandrel(&["call", "-I", "missing.idl", &bank.reference, "owner"]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("cannot read missing.idl"), "{}", stderr(&output));
    let output = spandrel(&["call", "-I", file, "--idl", file, &bank.reference, "owner"]);
    check_code(&output, 2);
    assert!(stderr(&output).contains("one file declares the interface"), "{}", stderr(&output));
}

#[test]
fn the_object_tells_which_interface_it_has() {
    let bank = Bank::open();
    let file = bank.file.to_str().unwrap();
    let profile = bank.profile();
    let key: String = profile.object_key.iter().map(|octet| format!("%{octet:02x}")).collect();
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{}/{key}", profile.port);
    let output = spandrel(&["call", "--idl", file, &url, "sort"]);
    check_code(&output, 0);
    assert_eq!(stdout(&output), "saving\n");
    // Of two that it supports, the derived one.
    let folder = tempfile::tempdir().unwrap();
    let idl = |text: &str| {
        let file = folder.path().join("other.idl");
        std::fs::write(&file, text).unwrap();
        file
    };
    let two = idl("module Bank { interface Account { void nothing(); }; interface Other {}; local interface L {}; };");
    let output = spandrel(&["call", "--idl", two.to_str().unwrap(), &url, "nothing"]);
    check_code(&output, 0);
    let none = idl("interface A {}; interface B {};");
    let output = spandrel(&["call", "--idl", none.to_str().unwrap(), &url, "nothing"]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("the object supports no interface of"), "{}", stderr(&output));
}

#[test]
fn a_load_reports_times_and_failures() {
    let bank = Bank::open();
    let load = ["--rate", "200", "--duration", "500ms", "--connections", "2"];
    let output = bank.call(&[&load[..], &["--json", "deposit", "5", "x"]].concat());
    check_code(&output, 0);
    let report = json(&output);
    assert_eq!((&report["due"], &report["answered"], &report["failed"]), (&100.into(), &100.into(), &0.into()));
    assert!(report["times"]["p99"].as_f64().unwrap() > 0.0, "{report}");
    let output = bank.call(&[&load[..], &["sort"]].concat());
    check_code(&output, 0);
    assert!(stdout(&output).starts_with("100 of 100 requests answered in 0.5 s"), "{}", stdout(&output));
    assert!(stdout(&output).contains("scheduled to answered"), "{}", stdout(&output));
    let output = bank.call(&[&load[..], &["deposit", "-5", "x"]].concat());
    check_code(&output, 1);
    assert!(stderr(&output).contains("cannot begin the load"), "{}", stderr(&output));
    check_code(&bank.call(&["--rate", "5"]), 2);
    check_code(&bank.call(&["--duration", "5s", "sort"]), 2);
}

/// Ctrl-C ends a load, and prints the distribution of the calls until then.
#[test]
#[cfg(unix)]
fn an_interrupted_load_prints_its_report() {
    let bank = Bank::open();
    let idl = bank.file.to_str().unwrap();
    let mut command = Command::cargo_bin("spandrel").unwrap();
    command.args(["call", "--idl", idl, "--rate", "200", "--duration", "60min", &bank.reference, "tick"]);
    let mut load = ChildProcess::start(command.stdout(Stdio::piped()));
    wait_until("some calls", || support::bank::ticks() > 20);
    assert!(Command::new("kill").args(["-INT", &load.id().to_string()]).status().unwrap().success());
    let text = std::io::read_to_string(load.stdout.take().unwrap()).unwrap();
    assert_eq!(load.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains("stopped before its time\n") && text.contains("scheduled to answered"), "{text}");
}

/// The server stalls once for 300 ms: a quarter of the calls of a second were due meanwhile.
#[test]
fn a_load_shows_a_stall_of_the_server() {
    let bank = Bank::open();
    let load = ["--rate", "200", "--duration", "1s", "--in-flight", "1", "--json"];
    let output = bank.call(&[&load[..], &["stall"]].concat());
    check_code(&output, 0);
    let report = json(&output);
    assert_eq!(report["answered"], 200);
    assert!(report["times"]["p90"].as_f64().unwrap() > 100_000.0, "{report}");
    assert!(report["times"]["max"].as_f64().unwrap() > 290_000.0, "{report}");
}

/// Over each transport, `call`, `ping` and `ior` reach an object that listens nowhere else.
#[test]
fn objects_are_reached_over_every_transport() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::new(folder.path());
    let ca = certificates.authority.to_str().unwrap();
    let mut endpoints = vec![("iiop://127.0.0.1:0", "iiop://", Vec::new())];
    if cfg!(feature = "tls") {
        endpoints.push(("ssliop://127.0.0.1:0", "ssliop://", vec!["--ca", ca]));
    }
    if cfg!(target_os = "linux") {
        endpoints.push(("uds://", "uds://", vec!["--orb", "-ORBTransports uds"]));
        endpoints.push(("shm://", "shm://", vec!["--orb", "-ORBTransports=shm"]));
    }
    for (endpoint, scheme, options) in endpoints {
        let bank = Bank::listening(endpoint, &certificates);
        bank.says(&[&options[..], &["sort"]].concat(), "saving\n");
        let ping = [&["ping", "--count", "1", &bank.reference][..], &options].concat();
        let output = spandrel(&ping);
        check_code(&output, 0);
        assert!(stdout(&output).contains(&format!(" at {scheme}")), "{endpoint}: {}", stdout(&output));
        let output = spandrel(&[&ping[..], &["--json"]].concat());
        let lines: Vec<serde_json::Value> =
            stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines[0]["address"].as_str().unwrap().starts_with(scheme), "{lines:?}");
        assert_eq!(lines[1]["locate_request"]["answer"], "OBJECT_HERE");
        assert_eq!(lines[2]["non_existent_calls"]["answered"], 1);
        let output = spandrel(&["ior", &bank.reference]);
        check_code(&output, 0);
        let words = match scheme {
            "iiop://" => "IIOP 1.2",
            "ssliop://" => "offers TLS only",
            other => other,
        };
        assert!(stdout(&output).contains(words), "{endpoint}: {}", stdout(&output));
        assert!(!stdout(&output).contains(":0/"), "a `corbaloc:` has a port: {}", stdout(&output));
    }
}

#[test]
#[cfg(feature = "tls")]
fn a_reference_with_tls_only_names_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::new(folder.path());
    let bank = Bank::listening("ssliop://127.0.0.1:0", &certificates);
    bank.fails(&["sort"], "the reference offers TLS only: --ca FILE names the authorities");
    let output = spandrel(&["ping", "--count", "1", &bank.reference]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("--ca FILE"), "{}", stderr(&output));
    // A client's own certificate is sent where the server requires it.
    let strict = Bank::listening_with(&["-ORBSSLVerify", "require"], "ssliop://127.0.0.1:0", &certificates);
    let [ca, cert, key] =
        [&certificates.authority, &certificates.chain, &certificates.key].map(|it| it.to_str().unwrap());
    strict.says(&["--ca", ca, "--cert", cert, "--key", key, "sort"], "saving\n");
    let output = strict.call(&["--ca", ca, "sort"]);
    check_code(&output, 1);
    let remedy = "error: the server requires a client certificate: --cert FILE and --key FILE name it and its key";
    assert!(stderr(&output).contains(remedy), "{}", stderr(&output));
    check_code(&strict.call(&["--cert", cert, "sort"]), 2);
}

#[test]
fn the_reference_is_read_from_standard_input() {
    let bank = Bank::open();
    let file = bank.file.to_str().unwrap();
    let output = spandrel_with_input(&["call", "--idl", file, "-", "sort"], &bank.reference);
    check_code(&output, 0);
    assert_eq!(stdout(&output), "saving\n");
}

#[test]
fn errors_in_idl_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.idl");
    std::fs::write(&file, "interface Half {").unwrap();
    let output = spandrel(&["call", "--idl", file.to_str().unwrap(), "corbaloc::localhost:1/x", "y"]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("bad.idl"), "{}", stderr(&output));
    let output = spandrel(&["call", "--idl", "nosuch.idl", "corbaloc::localhost:1/x", "y"]);
    check_code(&output, 1);
    assert_eq!(stderr(&output), "error: cannot read nosuch.idl: No such file or directory\n");
}

#[test]
fn each_cause_is_printed_once() {
    let bank = Bank::open();
    let idl = bank.file.to_str().unwrap();
    for reference in ["corbalo:iiop:127.0.0.1:1/x", "corbaloc:iiop:127.0.0.1:1/x"] {
        let output = spandrel(&["call", "--idl", idl, reference, "--interface", "Bank::Account", "sort"]);
        check_code(&output, 1);
        let message = stderr(&output);
        assert!(message.starts_with("error: "), "{message}");
        for cause in message.lines().filter_map(|line| line.strip_prefix("  cause: ")) {
            assert_eq!(message.matches(cause).count(), 1, "{message}");
        }
    }
}

/// The objects check the arguments, and their answers are compared with the static types' JSON.
#[test]
fn values_of_every_type_are_those_of_static_stubs() {
    let server = spandrel::Orb::builder().listen(spandrel::Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let hub = spandrel_interop::server::activate(&server).unwrap();
    let idl = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/idl/interop.idl");
    let idl = idl.to_str().unwrap();
    let cases = spandrel_interop::json_cases(7);
    let mut objects: Vec<&str> = cases.iter().map(|case| case.object).collect();
    objects.dedup();
    assert!(cases.len() > 50 && objects.len() == 5);
    for object in objects {
        let found = spandrel(&["call", "--idl", idl, "--json", &hub, object]);
        check_code(&found, 0);
        let found: serde_json::Value = serde_json::from_str(&stdout(&found)).unwrap();
        let cases: Vec<_> = cases.iter().filter(|case| case.object == object).collect();
        let calls: String = cases.iter().map(|case| format!("{} {}\n", case.operation, case.arguments)).collect();
        let reference = found["result"].as_str().unwrap();
        let called = spandrel_with_input(&["call", "--idl", idl, "--calls", "-", "--json", reference], &calls);
        check_code(&called, 0);
        let results: Vec<_> = cases.iter().map(|case| case.results.as_str()).collect();
        assert_eq!(stdout(&called).lines().collect::<Vec<_>>(), results, "{object}");
        // The text form is read, too, and the results without JSON are the same values.
        let text = spandrel_with_input(&["call", "--idl", idl, "--calls", "-", reference], &calls);
        check_code(&text, 0);
        assert!(stdout(&text).lines().count() >= 3 * cases.len(), "{}", stdout(&text));
    }
    server.shutdown().unwrap();
}

#[test]
fn the_error_of_an_idl_file_stands_before_its_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.idl");
    std::fs::write(&file, "valuetype Never;\ninterface A { void f(in lnog x); };\n").unwrap();
    let output = spandrel(&["call", "--idl", file.to_str().unwrap(), "corbaloc::127.0.0.1:1/x", "f"]);
    check_code(&output, 1);
    let text = stderr(&output);
    let cause = text.lines().find(|line| line.starts_with("  cause: ")).unwrap_or_default();
    assert_eq!(cause, "  cause: error: `lnog` is not defined", "{text}");
    assert!(text.contains("warning: valuetype `Never` is declared and never defined"), "{text}");
}

/// As by `spandrel watch … | head -1`.
#[test]
#[cfg(unix)]
fn a_watch_without_a_reader_ends() {
    let bank = Bank::open();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::cargo_bin("spandrel").unwrap();
    let idl = bank.file.to_str().unwrap();
    command.args(["watch", "--idl", idl, "--interval", "10ms", &bank.reference, "sort"]).stdout(writer);
    let mut watch = ChildProcess::start(&mut command);
    wait_until("its end", || watch.try_wait().unwrap().is_some());
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}
