//! `spandrel list`, `tree`, `bind`, `unbind`, `describe`, `watch`, calls by name, and completion; against our naming service and omniNames.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spandrel::dynamic::{DescribedCall, DescribedServant, NvList, RequestError, describe, describe_file};
use spandrel::services::cos_naming::{Binding, BindingIterator, BindingType, NameComponent};
use spandrel::services::repository::fill;
use spandrel::types::{Any, Ior, TypeCode, ior_to_string};
use spandrel::{Endpoint, Orb, Poa};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};
use spandrel_test_support::{TEST_TIMEOUT, holds_within};

use crate::support::bank::Bank;
use crate::support::{Running, check_code, spandrel, spandrel_with_input, stderr, stdout};

/// A naming service and an interface repository in this process.
struct Services {
    orb: Orb,
    naming: Option<NamingService>,
    repository: Option<InterfaceRepository>,
    /// The option of the ORB for both.
    option: [String; 2],
    url: String,
    _data: tempfile::TempDir,
}

impl Services {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let naming = NamingService::start(&orb, NamingOptions::new(data.path())).unwrap();
        let repository = InterfaceRepository::start(&orb, RepositoryOptions::new(data.path())).unwrap();
        let (host, port) = orb.listen().unwrap().remove(0);
        let url = format!("corbaloc::{host}:{port}");
        let option = ["NameService", "InterfaceRepository"].map(|name| format!("-ORBInitRef {name}={url}/{name}"));
        Self { orb, naming: Some(naming), repository: Some(repository), option, url, _data: data }
    }

    /// Runs a command with the services in its options.
    fn run(&self, command: &str, words: &[&str]) -> Output {
        let [names, interfaces] = &self.option;
        spandrel(&[&[command, "--orb", names, "--orb", interfaces], words].concat())
    }

    /// The output of a command that succeeds.
    #[track_caller]
    fn ok(&self, command: &str, words: &[&str]) -> String {
        let output = self.run(command, words);
        check_code(&output, 0);
        stdout(&output)
    }

    /// The error of a command that fails.
    #[track_caller]
    fn fails(&self, command: &str, words: &[&str]) -> String {
        let output = self.run(command, words);
        check_code(&output, 1);
        stderr(&output)
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.naming.take().map(NamingService::stop);
        self.repository.take().map(InterfaceRepository::stop);
        _ = self.orb.shutdown();
    }
}

/// Binds and shows names of all kinds; the same for every naming service.
fn names_are_bound_and_shown(run: &dyn Fn(&str, &[&str]) -> Output, url: &str) {
    let ok = |command: &str, words: &[&str]| {
        let output = run(command, words);
        check_code(&output, 0);
        stdout(&output)
    };
    let fails = |command: &str, words: &[&str]| {
        let output = run(command, words);
        check_code(&output, 1);
        stderr(&output)
    };
    let object = "corbaloc::127.0.0.1:9/object";
    assert_eq!(ok("list", &[]), "");
    ok("bind", &["--context", "Bank"]);
    ok("bind", &["Bank/alice", object]);
    ok("bind", &["--parents", "Bank/branches/north/bob.teller", object]);
    ok("bind", &["Bank/odd\\/name\\.with\\\\signs.k\u{e9}", object]);
    assert_eq!(ok("list", &["Bank"]), "alice\nbranches/\nodd\\/name\\.with\\\\signs.k\u{e9}\n");
    let listed: Value = serde_json::from_str(&ok("list", &["--json", "Bank"])).unwrap();
    assert_eq!(listed[1], json!({ "name": "branches", "kind": "context" }));
    let tree = "└── Bank/\n    ├── alice\n    ├── branches/\n    │   └── north/\n    │       └── bob.teller\n    └── odd\\/name\\.with\\\\signs.k\u{e9}\n";
    assert_eq!(ok("tree", &[]), tree);
    assert_eq!(ok("tree", &["--depth", "1"]), "└── Bank/ (deeper)\n");
    let json: Value = serde_json::from_str(&ok("tree", &["--json", "Bank/branches"])).unwrap();
    assert_eq!(json[0]["bindings"][0], json!({ "name": "bob.teller", "kind": "object" }));
    // A URL with the name behind it.
    assert_eq!(ok("list", &[&format!("{}#Bank/branches", url.replace("corbaloc", "corbaname"))]), "north/\n");
    assert_eq!(ok("list", &[&format!("{url}/NameService")]), "Bank/\n");

    assert!(fails("bind", &["Bank/alice", object]).contains("it is bound already (--rebind replaces a binding)"));
    ok("bind", &["--rebind", "Bank/alice", "corbaloc::127.0.0.1:9/other"]);
    assert!(fails("bind", &["None/alice", object]).contains("`None` is not bound"));
    assert!(fails("bind", &["Bank//alice", object]).contains("is not a name"));
    check_code(&run("bind", &["Bank/new"]), 2);
    // omniNames calls the object, which cannot be reached.
    let through = fails("list", &["Bank/alice/deep"]);
    let is_named = through.contains("the name leads through an object that is no context (from `alice/deep` on)");
    assert!(is_named || through.contains("CORBA::TRANSIENT") || through.contains("cannot proceed"), "{through}");
    assert!(fails("bind", &["Bank/new", "IOR:zz"]).contains("cannot read the reference"));
    assert!(fails("bind", &["Bank/new", "nonsense"]).contains("`nonsense` is not bound"));
    assert!(fails("list", &["None"]).contains("`None` is not bound"));
    assert!(fails("unbind", &["Bank/nobody"]).contains("cannot unbind `Bank/nobody`"));
    assert!(fails("unbind", &["--destroy", "Bank"]).contains("the context is not empty"));
    // A context below itself is shown once.
    let root = format!("{url}/NameService");
    ok("bind", &["--context", "Bank/branches/up", &root]);
    let bank = format!("{}#Bank", url.replace("corbaloc", "corbaname"));
    ok("bind", &["--context", "Bank/branches/north/again", &bank]);
    let tree = ok("tree", &["Bank"]);
    assert_eq!(tree.matches("(bound above)").count(), 2, "{tree}");
    assert!(tree.lines().count() < 20, "{tree}");
    for name in ["Bank/branches/north/bob.teller", "Bank/branches/north/again", "Bank/branches/up"] {
        ok("unbind", &[name]);
    }
    ok("unbind", &["--destroy", "Bank/branches/north"]);
    assert_eq!(ok("list", &["Bank/branches"]), "");
}

#[test]
fn our_naming_service_is_used() {
    let services = Services::start();
    names_are_bound_and_shown(&|command, words| services.run(command, words), &services.url);
}

/// An initial reference that was given is used, or is an error: no other service is read or changed in its place.
#[test]
fn an_initial_reference_that_cannot_be_read_is_an_error() {
    let object = "corbaloc::127.0.0.1:9/object";
    let commands: [&[&str]; 7] = [
        &["list"],
        &["tree"],
        &["bind", "x", object],
        &["unbind", "x"],
        &["describe", "x"],
        &["call", "x", "f"],
        &["watch", "x"],
    ];
    let options =
        ["-ORBInitRef NameService=garbage", "-ORBDefaultInitRef garbage", "-ORBInitRef NameService=corbaloc:x:y"];
    for (words, option) in commands.into_iter().flat_map(|words| options.map(|option| (words, option))) {
        let output = spandrel(&[&[words[0], "--orb", option], &words[1..]].concat());
        check_code(&output, 1);
        let error = stderr(&output);
        assert!(error.contains("cannot use the given initial reference"), "{words:?} {option}: {error}");
    }
    let services = Services::start();
    let repository = "-ORBInitRef InterfaceRepository=garbage";
    let error = spandrel(&["call", "--orb", repository, &format!("{}/NameService", services.url), "list"]);
    check_code(&error, 1);
    assert!(
        stderr(&error).contains("cannot use the given initial reference `InterfaceRepository`"),
        "{}",
        stderr(&error)
    );
}

#[test]
fn names_beyond_iso_8859_1_are_bound_and_called_by_url() {
    let services = Services::start();
    for name in ["\u{6771}\u{4eac}", "\u{141}ukasz", "caf\u{e9}"] {
        let url = format!("corbaname:{}#{name}", services.url.strip_prefix("corbaloc:").unwrap());
        check_code(&spandrel(&["bind", &url, &format!("{}/NameService", services.url)]), 0);
        check_code(&spandrel(&["ping", &url]), 0);
        services.ok("list", &[name]);
    }
    let latin1 = format!("corbaname:{}#caf%e9", services.url.strip_prefix("corbaloc:").unwrap());
    check_code(&spandrel(&["unbind", &latin1]), 0);
    assert_eq!(services.ok("list", &[]).lines().count(), 2);
}

#[test]
fn each_command_that_reads_a_reference_reads_a_name() {
    let services = Services::start();
    let bank = Bank::open();
    services.ok("bind", &["Bank", &bank.reference]);
    services.ok("bind", &["Second", "Bank"]);
    for name in ["Bank", "Second"] {
        services.ok("ping", &["--count", "1", name]);
        assert!(services.ok("ior", &[name]).contains("IDL:Bank/Account:1.0"));
    }
    let option = &*services.option[0];
    for command in ["ping", "ior"] {
        let missing = spandrel(&[command, "--orb", option, "None"]);
        check_code(&missing, 1);
        assert!(stderr(&missing).contains("`None` is not bound"), "{}", stderr(&missing));
    }
}

#[test]
fn a_file_names_the_naming_service() {
    let services = Services::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ns.ior");
    std::fs::write(&file, services.naming.as_ref().unwrap().reference().to_string()).unwrap();
    let option = format!("-ORBInitRef NameService=file://{}", file.display());
    check_code(&spandrel(&["bind", "--orb", &option, "x", &format!("{}/NameService", services.url)]), 0);
    assert_eq!(services.ok("list", &[]).lines().count(), 1);
    let url = format!("file://{}", file.display());
    check_code(&spandrel(&["ping", &url]), 0);
    check_code(&spandrel(&["ior", &url]), 0);
}

#[test]
fn omni_names_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let port = spandrel_test_support::free_port();
    let mut command = Command::new("omniNames");
    command.args(["-start", &port.to_string(), "-always", "-datadir"]).arg(folder.path());
    command.args(["-ORBendPointPublish", "giop:tcp:127.0.0.1:"]).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(_process) = spandrel_test_support::ChildProcess::try_start(&mut command) else {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "omniNames is absent (omniorb-nameserver)");
        eprintln!("omniNames is absent");
        return;
    };
    let url = format!("corbaloc::127.0.0.1:{port}");
    let option = format!("-ORBInitRef NameService={url}/NameService");
    let run = |command: &str, words: &[&str]| spandrel(&[&[command, "--orb", &option], words].concat());
    let deadline = Instant::now() + Duration::from_secs(20);
    while run("list", &[]).status.code() != Some(0) {
        assert!(Instant::now() < deadline, "omniNames does not answer");
    }
    names_are_bound_and_shown(&run, &url);
}

#[test]
fn thousands_of_bindings_are_listed() {
    let services = Services::start();
    let root = services.naming.as_ref().unwrap().reference();
    let root = spandrel::services::cos_naming::NamingContextExt::unchecked_narrow(root);
    let object = services.orb.string_to_object("corbaloc::127.0.0.1:9/object").unwrap();
    let part = |id: String| [spandrel::services::cos_naming::NameComponent { id, kind: String::new() }];
    for number in 0..3000 {
        root.bind(&part(format!("name{number:04}")), Some(&object)).unwrap();
    }
    let listed = services.ok("list", &[]);
    assert_eq!(listed.lines().count(), 3000);
    assert!(listed.starts_with("name0000\nname0001\n") && listed.ends_with("name2999\n"));
    assert_eq!(services.ok("tree", &[]).lines().count(), 3000);
}

/// The operations of a naming service that lists one name, or the same one without an end.
const HOSTILE_NAMES: &str = "
#pragma prefix \"omg.org\"
module CosNaming {
  struct NameComponent { string id; string kind; };
  typedef sequence<NameComponent> Name;
  enum BindingType { nobject, ncontext };
  struct Binding { Name binding_name; BindingType binding_type; };
  typedef sequence<Binding> BindingList;
  interface BindingIterator {
    boolean next_n(in unsigned long how_many, out BindingList bl);
    void destroy();
  };
  interface NamingContext {
    Object resolve(in Name n);
    void list(in unsigned long how_many, out BindingList bl, out BindingIterator bi);
  };
};";
const HOSTILE_TEXT: &str = "x\ny\u{1b}[2J\u{9b}31m";

/// The URL of the root context.
fn serve_hostile_names(orb: &Orb, is_endless: bool) -> String {
    let bindings = || {
        let name = NameComponent { id: HOSTILE_TEXT.to_owned(), kind: String::new() };
        vec![Binding { binding_name: vec![name], binding_type: BindingType::Nobject }]
    };
    let (interfaces, adapter) = (describe(HOSTILE_NAMES).unwrap(), Poa::root(orb).unwrap());
    let void = || Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap());
    let next = move |call: &DescribedCall<'_>, list: &mut NvList| -> Result<Any, RequestError> {
        if &*call.operation.name == "destroy" {
            return void();
        }
        list.set(1, &bindings())?;
        Ok(Any::new(true).unwrap())
    };
    let interface = interfaces.interface("CosNaming::BindingIterator").unwrap();
    let iterator = adapter.activate(DescribedServant::described(interface, next)).unwrap();
    let iterator = BindingIterator::unchecked_narrow(&iterator);
    let names = move |call: &DescribedCall<'_>, list: &mut NvList| -> Result<Any, RequestError> {
        assert_eq!(&*call.operation.name, "list");
        list.set(1, &bindings())?;
        list.set(2, &is_endless.then(|| iterator.clone()))?;
        void()
    };
    let interface = interfaces.interface("CosNaming::NamingContext").unwrap();
    adapter.activate(DescribedServant::described(interface, names)).unwrap().to_string()
}

#[test]
fn a_listing_without_an_end_ends_with_the_time_limit() {
    let orb = Orb::builder().build().unwrap();
    let url = serve_hostile_names(&orb, true);
    for command in ["list", "tree"] {
        let begin = Instant::now();
        let output = spandrel(&[command, "-t", "0.5", &url]);
        check_code(&output, 1);
        let error = stderr(&output);
        assert!(error.contains("(--timeout)") || error.contains("CORBA::TIMEOUT"), "{error}");
        assert!(begin.elapsed() < TEST_TIMEOUT);
    }
    orb.shutdown().unwrap();
}

#[test]
fn texts_of_others_do_not_reach_the_terminal_as_they_are() {
    let orb = Orb::builder().build().unwrap();
    let url = serve_hostile_names(&orb, false);
    let has_effect = |character: char| character.is_control() && character != '\n';
    let checked = |words: &[&str]| {
        let output = spandrel(words);
        for text in [stdout(&output), stderr(&output)] {
            assert!(
                !text.contains(has_effect) && !text.lines().any(|line| line.starts_with('y')),
                "{words:?}: {text:?}"
            );
        }
        stdout(&output)
    };
    assert_eq!(checked(&["list", &url]), "x\\ny\\u001b[2J\\u009b31m\n");
    checked(&["tree", &url]);
    checked(&["watch", "--count", "1", "--interval", "0.1", &url]);
    let listed: Value = serde_json::from_str(&checked(&["list", "--json", &url])).unwrap();
    assert_eq!(listed[0]["name"], HOSTILE_TEXT, "JSON has the text");
    // A reference with such a type.
    let served = orb.string_to_object(&url).unwrap();
    let ior = Ior { type_id: HOSTILE_TEXT.to_owned(), profiles: served.ior().profiles.clone() };
    let url = ior_to_string(&ior);
    for command in ["ping", "ior", "describe", "list"] {
        checked(&[command, &url]);
        checked(&[command, "--json", &url]);
    }
    checked(&["ping", "corbaloc::x\u{1b}[2J\u{9b}:1/k"]);
    checked(&["call", &url, "x"]);
    checked(&["bind", "a", &url, "--timeout", "1", "--orb", &format!("-ORBInitRef NameService={url}")]);
    orb.shutdown().unwrap();
}

#[test]
fn objects_are_called_and_described_by_name() {
    let services = Services::start();
    let bank = Bank::open();
    let documented = "module Bank { enum Kind { checking, saving }; struct Entry { string what; };
        /** An account. */
        interface Account {
            /** The customer. */
            readonly attribute string owner;
            attribute Kind sort;
            /**
             * Does nothing.
             * Quickly.
             */
            void nothing(); oneway void hint(in Kind how); any echo(in any what); }; };";
    let file = bank.file.with_file_name("documented.idl");
    std::fs::write(&file, documented).unwrap();
    let repository = services.repository.as_ref().unwrap().reference().clone();
    fill(&repository, &describe_file(&file, []).unwrap()).unwrap();
    services.ok("bind", &["--parents", "Bank/ada", &bank.reference]);
    assert_eq!(services.ok("call", &["Bank/ada", "owner"]), "\"Ada \\\"A.\\\" L.\"\n");
    let url = format!("{}#Bank/ada", services.url.replace("corbaloc", "corbaname"));
    assert_eq!(services.ok("call", &[&url, "sort"]), "saving\n");
    // A type that only the repository knows: the interface does not use it.
    let entry = services.ok("call", &["Bank/ada", "echo", "Bank::Entry {what: \"rent\"}"]);
    assert!(entry.contains("what: \"rent\""), "{entry}");
    assert!(services.fails("call", &["Bank/ada", "echo", "Bank::Missing {what: \"rent\"}"]).contains("unknown type"));
    assert!(services.fails("call", &["Bank/eve", "owner"]).contains("cannot resolve `Bank/eve`"));
    let address = services.fails("call", &["127.0.0.1:1/eve", "owner"]);
    assert!(address.contains("an object at an address is `corbaloc::127.0.0.1:1/eve`"), "{address}");

    let described = services.ok("describe", &["Bank/ada"]);
    let expected = "/** An account. */\ninterface Account { // IDL:Bank/Account:1.0\n  /** The customer. */\n  readonly attribute \
                    string owner;\n  attribute Kind sort;\n  /**\n   * Does nothing.\n   * Quickly.\n   */\n  void nothing();\n";
    assert!(described.starts_with(expected), "{described}");
    let json: Value = serde_json::from_str(&services.ok("describe", &["--json", "Bank/ada"])).unwrap();
    assert_eq!(json["documentation"], "An account.");
    assert_eq!(json["attributes"][0]["documentation"], "The customer.");
    let of_file = spandrel(&["describe", "--idl", file.to_str().unwrap(), &bank.reference]);
    check_code(&of_file, 0);
    assert_eq!(stdout(&of_file), described);
}

#[test]
fn changes_are_watched() {
    let services = Services::start();
    let object = "corbaloc::127.0.0.1:9/object";
    services.ok("bind", &["first", object]);
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("spandrel"));
    command.args(["watch", "--interval", "20ms", "--changes", "4", "--orb", &services.option[0], ""]);
    let watching = Running::start(command);
    assert_eq!(watching.line(), "+ first");
    services.ok("bind", &["--context", "second"]);
    assert_eq!(watching.line(), "+ second/");
    services.ok("unbind", &["first"]);
    assert_eq!(watching.line(), "- first");
    services.ok("bind", &["--rebind", "third", object]);
    assert_eq!(watching.line(), "+ third");
    assert_eq!(watching.finish(), Some(0));

    let bank = Bank::open();
    let file = bank.file.to_str().unwrap();
    let watched =
        spandrel(&["watch", "--idl", file, "--interval", "10ms", "--for", "100ms", "--json", &bank.reference, "owner"]);
    check_code(&watched, 0);
    // It does not change.
    assert_eq!(stdout(&watched), "{\"result\":\"Ada \\\"A.\\\" L.\",\"out\":{}}\n");
}

#[test]
fn a_file_of_calls_is_made_in_order() {
    let bank = Bank::open();
    let file = bank.file.to_str().unwrap();
    let calls = "# comment\n\nowner\ndeposit {\"amount\": 5, \"note\": \"a\"}\ndeposit [-1, \"b\"]\nhint {\"how\": \"saving\"}\nnothing {}\nsort [\"saving\"]\n";
    let run = |more: &[&str]| {
        spandrel_with_input(
            &[&["call", "--idl", file, "--calls", "-", "--json", &bank.reference], more].concat(),
            calls,
        )
    };
    let once = run(&[]);
    check_code(&once, 1);
    let lines: Vec<Value> = stdout(&once).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6, "{}", stdout(&once));
    assert_eq!(lines[1]["out"]["note"], "A");
    assert_eq!(lines[2]["exception"]["id"], "IDL:Bank/Broke:1.0");
    assert_eq!(lines[4], json!({ "out": {} }));
    assert!(stderr(&once).contains("error: 1 of 6 calls failed"), "{}", stderr(&once));
    // Sent without waiting, the results have the same order.
    let deferred = run(&["--deferred", "--repeat", "3"]);
    check_code(&deferred, 1);
    assert_eq!(stdout(&deferred), stdout(&once).repeat(3));
    // Errors name the line, and nothing is called.
    let wrong = spandrel_with_input(&["call", "--idl", file, "--calls", "-", &bank.reference], "owner\ndeposit [1]\n");
    check_code(&wrong, 1);
    assert!(stdout(&wrong).is_empty() && stderr(&wrong).contains("standard input:2"), "{}", stderr(&wrong));
    let unknown = spandrel_with_input(&["call", "--idl", file, "--calls", "-", &bank.reference], "ownr\n");
    assert!(stderr(&unknown).contains("did you mean") && stderr(&unknown).contains("owner"), "{}", stderr(&unknown));
    let repeated = spandrel(&["call", "--idl", file, "--repeat", "3", "--interval", "1ms", &bank.reference, "owner"]);
    check_code(&repeated, 0);
    assert_eq!(stdout(&repeated).lines().count(), 3);
}

/// The completions that a shell gets for these words.
fn completions(words: &[&str]) -> Vec<String> {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("spandrel"));
    command.env("COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9");
    command.env("_CLAP_COMPLETE_SPACE", "false").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.args(["--", "spandrel"]).args(words).output().unwrap();
    check_code(&output, 0);
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn names_and_operations_are_completed() {
    let services = Services::start();
    let bank = Bank::open();
    services.ok("bind", &["--parents", "Bank/ada", &bank.reference]);
    services.ok("bind", &["Bank/bob", &bank.reference]);
    let option = &*services.option[0];
    // Services have little time to answer, which a busy machine may exceed.
    let completes = |words: &[&str], expected: &[&str]| {
        let mut candidates = Vec::new();
        let is_so = holds_within(TEST_TIMEOUT, || {
            candidates = completions(&[&[words[0], "--orb", option], &words[1..]].concat());
            candidates == expected
        });
        assert!(is_so, "{words:?}: {candidates:?}");
    };
    completes(&["call", "B"], &["Bank/"]);
    completes(&["call", "Bank/"], &["Bank/ada", "Bank/bob"]);
    completes(&["unbind", "Bank/b"], &["Bank/bob"]);
    completes(&["ping", "Bank/b"], &["Bank/bob"]);
    completes(&["ior", "Bank/b"], &["Bank/bob"]);
    completes(&["call", "None/"], &[]);
    let file = bank.file.to_str().unwrap();
    completes(&["call", "--idl", file, "Bank/ada", "own"], &["owner"]);
    completes(&["watch", "--idl", file, "Bank/ada", "ho"], &[]);
    assert_eq!(completions(&["tre"]), ["tree"]);
    assert_eq!(completions(&["ping", "--interv"]), ["--interval"]);
    // Nothing answers: no candidates, in time.
    let start = Instant::now();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("-ORBInitRef NameService=corbaloc::{}/NameService", silent.local_addr().unwrap());
    assert_eq!(completions(&["list", "--orb", &nowhere, "B"]), [""; 0]);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn bash_completes() {
    let services = Services::start();
    services.ok("bind", &["--context", "Bank"]);
    let program = assert_cmd::cargo::cargo_bin("spandrel");
    let script = "source <(\"$SPANDREL\" completions bash)\nCOMP_WORDS=(spandrel list --orb \"$OPTION\" Ba); COMP_CWORD=4; COMP_TYPE=9\n\
                  _spandrel spandrel Ba --orb\necho \"${COMPREPLY[@]}\"\n\
                  # As readline takes `spandrel list corbaname::HOST:PORT/NameService#Ba` apart.\n\
                  COMP_WORDS=(spandrel list corbaname :: \"$HOST\" : \"$PORT/NameService#Ba\"); COMP_CWORD=6\n\
                  _spandrel spandrel \"$PORT/NameService#Ba\" :\necho \"${COMPREPLY[@]}\"";
    let (host, port) = services.url.trim_start_matches("corbaloc::").split_once(':').unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(script).env("SPANDREL", &program).env("PATH", path).env("OPTION", &services.option[0]);
    bash.env("HOST", host).env("PORT", port);
    // The service has little time to answer, which a busy machine may exceed.
    let mut output = None;
    let is_so = holds_within(TEST_TIMEOUT, || {
        let output = output.insert(bash.output().unwrap());
        check_code(output, 0);
        stdout(output) == format!("Bank/\n{port}/NameService#Bank/\n")
    });
    assert!(is_so, "{output:?}");
    for shell in ["zsh", "fish"] {
        let script = spandrel(&["completions", shell]);
        check_code(&script, 0);
        assert!(stdout(&script).contains("COMPLETE"), "{}", stdout(&script));
    }
}
