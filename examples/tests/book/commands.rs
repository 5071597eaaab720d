//! Commands: each block ` ```sh ` of a page is run, in the order of the page, in one temporary folder.
//!
//! Comments configure that. On the page:
//!
//! ```text
//! <!-- programs: server=tutorial-first-server client=tutorial-first-client -->  `cargo run --bin server` runs that example
//!                                                            and `target/debug/server` is that program
//! <!-- ports: 2809 9464 -->                                  these ports are replaced by free ones
//! <!-- files: idl/a.idl=examples/a/a.idl -->                  a copy of the file is there
//! <!-- needs: omniNames nameclt -->                          programs of Debian packages
//! <!-- environment: A=127.0.0.1:2809 -->                     a variable of all commands
//! <!-- services: naming -->                                  executables that `spandrel NAME` runs
//! ```
//!
//! Before a block:
//!
//! ```text
//! <!-- terminal 1 -->            runs in the background; a later block of this terminal first interrupts it
//! <!-- terminal 1, port 2809 --> the same; it is ready when the port accepts connections
//! <!-- after Ctrl-C in terminal 1 --> its command is interrupted before
//! <!-- not run: takes minutes -->
//! ```
//!
//! A block ` ```text ` directly after the commands is their output; `…` there stands for any characters. A
//! command in the background is ready when it has written this output. `<!-- output of terminal 1 -->` precedes
//! what it writes later, and `<!-- output of terminal 1 after Ctrl-C -->` what it writes at its end.
//!
//! Where a needed program is absent the page is not run, and the test says so. It fails then if the variable
//! `SPANDREL_EXPECTS_PROGRAMS` is set, as in `.ci/run`.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
};

use spandrel_test_support::{ChildProcess, TEST_TIMEOUT, free_port, wait_until};

use super::page::{Block, Page, book, root};

const EXPECTED: &str = "SPANDREL_EXPECTS_PROGRAMS";

/// The values of a page's comment `<!-- name: … -->`.
fn setting<'p>(page: &'p Page, name: &str) -> Vec<&'p str> {
    let start = format!("<!-- {name}: ");
    let values = page.text.lines().filter_map(|line| line.strip_prefix(&*start)?.strip_suffix("-->"));
    values.flat_map(str::split_whitespace).collect()
}

/// Whether the command exists.
fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether a text has this form, in which `…` stands for any characters.
fn matches(form: &str, text: &str) -> bool {
    let Some((start, rest)) = form.split_once('…') else { return form == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    rest.is_empty() || text.char_indices().any(|(at, _)| matches(rest, &text[at..])) || matches(rest, "")
}

/// A command in the background, with the processes that it starts.
struct Terminal {
    child: ChildProcess,
    output: Receiver<String>,
    /// Its standard error until now.
    errors: Arc<Mutex<String>>,
}

impl Terminal {
    fn signal(&self, name: &str) {
        let group = format!("-{}", self.child.id());
        Command::new("kill").args(["-s", name, "--", &group]).stderr(Stdio::null()).status().expect("kill runs");
    }

    /// Waits for these lines of output.
    fn await_output(&self, form: &str, at: &str) {
        for line in form.lines() {
            let found = self.output.recv_timeout(TEST_TIMEOUT);
            let found = found.unwrap_or_else(|_| panic!("{at}: no line `{line}`\n{}", self.errors.lock().unwrap()));
            assert!(matches(line, &found), "{at}: the output is `{found}`, and not `{line}`");
        }
    }

    /// Whether a program among its processes handles Ctrl-C.
    fn handles_interrupt(&self) -> bool {
        let handles = |process: &Path| {
            let read = |name: &str| std::fs::read_to_string(process.join(name)).unwrap_or_default();
            let stat = read("stat");
            // After the name in parentheses: the state, the parent, the group.
            let group = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(2));
            let status = read("status");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
            let is_caught = u64::from_str_radix(caught, 16).is_ok_and(|caught| caught & (1 << 1) != 0);
            group == Some(&*self.child.id().to_string()) && is_caught && read("comm").trim() != "bash"
        };
        std::fs::read_dir("/proc").is_ok_and(|all| all.flatten().any(|process| handles(&process.path())))
    }

    /// Interrupts it as Ctrl-C does, and waits for its end.
    fn interrupt(&mut self) {
        self.signal("INT");
        wait_until("the end of an interrupted command", || self.child.try_wait().unwrap().is_some());
    }
}

/// One run of a page.
struct Session {
    folder: tempfile::TempDir,
    prelude: String,
    ports: Vec<(String, String)>,
    terminals: BTreeMap<String, Terminal>,
}

/// `kill` returns when the processes have ended: a reader does not type the next command before that.
const KILL: &str = "kill() {
  command kill \"$@\"
  for id in \"$@\"; do
    case $id in -*) ;; *) while command kill -0 \"$id\" 2> /dev/null; do sleep 0.01; done ;; esac
  done
}
";

impl Session {
    fn new(page: &Page) -> Self {
        let quoted = |path: &Path| format!("'{}'", path.display());
        let mut programs = String::new();
        for program in setting(page, "programs") {
            let (name, example) = program.split_once('=').expect("programs: NAME=EXAMPLE");
            let path = quoted(&crate::programs::example_path(example));
            programs += &format!("    {name}) set -- {path} \"$@\" ;;\n");
        }
        // The package that a reader makes from the page's listings is this repository's package of examples.
        let mut prelude = format!(
            "cargo() {{\n  [ \"$1\" != build ] || return 0\n  [ \"$1 $2\" = 'run --bin' ] || {{ echo \"not replaced: cargo $*\" >&2; return 64; }}\n  name=$3\n  \
             shift 3\n  [ $# = 0 ] || shift\n  case $name in\n{programs}    *) echo \"programs: has no $name\" >&2; return 64 ;;\n  \
             esac\n  \"$@\"\n}}\n"
        );
        prelude += KILL;
        if page.blocks.iter().any(|block| block.language == "sh" && block.content.contains("spandrel ")) {
            prelude += &format!("spandrel() {{ {} \"$@\"; }}\n", quoted(&crate::programs::command_line()));
            setting(page, "services").into_iter().for_each(crate::programs::build_service);
        }
        let free = |port: &str| (port.to_owned(), free_port().to_string());
        let ports: Vec<(String, String)> = setting(page, "ports").into_iter().map(free).collect();
        let folder = tempfile::tempdir().expect("a folder");
        for file in setting(page, "files") {
            let (name, source) = file.split_once('=').expect("files: NAME=SOURCE");
            let name = folder.path().join(name);
            std::fs::create_dir_all(name.parent().expect("it is in the folder")).expect("a folder");
            std::fs::copy(root().join(source), name).expect("the file is copied");
        }
        for variable in setting(page, "environment") {
            let replace = |text: String, (shown, used): &(String, String)| text.replace(shown, used);
            prelude += &format!("export {}\n", ports.iter().fold(variable.to_owned(), replace));
        }
        // Where `cargo build` leaves them.
        let built = folder.path().join("target/debug");
        std::fs::create_dir_all(&built).expect("a folder");
        for program in setting(page, "programs") {
            let (name, example) = program.split_once('=').expect("programs: NAME=EXAMPLE");
            std::os::unix::fs::symlink(crate::programs::example_path(example), built.join(name)).expect("a link");
        }
        Self { folder, prelude, ports, terminals: BTreeMap::new() }
    }

    fn with_ports(&self, text: &str) -> String {
        self.ports.iter().fold(text.to_owned(), |text, (shown, used)| text.replace(shown, used))
    }

    fn command(&self, block: &Block) -> Command {
        let mut command = Command::new("bash");
        command.args(["-euc", &format!("{}{}", self.prelude, self.with_ports(&block.content))]);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&mut self, block: &Block, output: Option<&Block>, at: &str) {
        let marker = block.marker.as_deref().unwrap_or_default();
        let output = output.map(|block| self.with_ports(block.content.trim_end()));
        if let Some(name) = marker.strip_prefix("after Ctrl-C in terminal ") {
            self.terminals.remove(name).unwrap_or_else(|| panic!("{at}: no terminal {name}")).interrupt();
        }
        let Some(terminal) = marker.strip_prefix("terminal ") else {
            let started = self.start(block);
            let mut lines = Vec::new();
            while let Ok(line) = started.output.recv_timeout(TEST_TIMEOUT) {
                lines.push(line);
            }
            let mut started = started;
            wait_until(at, || started.child.try_wait().unwrap().is_some());
            let status = started.child.wait().expect("its status");
            let printed = lines.join("\n");
            assert!(status.success(), "{at}: {status}\n{printed}\n{}", started.errors.lock().unwrap());
            if let Some(form) = output {
                assert!(matches(&form, &printed), "{at}: the output is\n{printed}\nand not\n{form}");
            }
            return;
        };
        let (name, port) = terminal.split_once(", port ").map_or((terminal, None), |(name, port)| (name, Some(port)));
        if let Some(mut running) = self.terminals.remove(name) {
            running.interrupt();
        }
        let mut started = self.start(block);
        if let Some(form) = output {
            started.await_output(&form, at);
        }
        if let Some(port) = port {
            let address = format!("127.0.0.1:{}", self.with_ports(port));
            wait_until(&format!("{at}: {address}"), || {
                let has_ended = started.child.try_wait().unwrap().is_some();
                assert!(!has_ended, "{at}: the command has ended\n{}", started.errors.lock().unwrap());
                TcpStream::connect(&address).is_ok()
            });
        }
        self.terminals.insert(name.to_owned(), started);
    }

    fn start(&self, block: &Block) -> Terminal {
        let mut child = ChildProcess::try_start_group(&mut self.command(block)).expect("bash runs");
        let (sender, output) = channel();
        let stdout = child.stdout.take().expect("it is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let errors = Arc::new(Mutex::new(String::new()));
        let (stderr, text) = (child.stderr.take().expect("it is piped"), Arc::clone(&errors));
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                *text.lock().unwrap() += &(line + "\n");
            }
        });
        Terminal { child, output, errors }
    }
}

/// Ends the processes that a command has started in groups of their own, as the activator does: they run in the folder.
impl Drop for Session {
    fn drop(&mut self) {
        self.terminals.clear();
        let is_here = |process: &Path| {
            std::fs::read_link(process.join("cwd")).is_ok_and(|folder| folder.starts_with(self.folder.path()))
        };
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|process| process.path());
        for process in all.filter(|process| is_here(process)) {
            let id = process.file_name().expect("a folder of /proc has a name");
            _ = Command::new("kill").args(["-s", "KILL", "--"]).arg(id).stderr(Stdio::null()).status();
        }
    }
}

fn is_run(block: &Block) -> bool {
    block.language == "sh" && !block.marker.as_deref().is_some_and(|marker| marker.starts_with("not run: "))
}

/// Runs all commands of a page.
fn run(path: &str) {
    let page = Page::read(path);
    if let Some(absent) = setting(&page, "needs").into_iter().find(|program| !exists(program)) {
        assert!(std::env::var_os(EXPECTED).is_none(), "{path} needs the program {absent}");
        eprintln!("{path} is not run: it needs the program {absent}");
        return;
    }
    let mut session = Session::new(&page);
    let mut runs = 0;
    for (number, block) in page.blocks.iter().enumerate() {
        let at = format!("{path}:{}", block.line);
        if let Some(name) = block.marker.as_deref().and_then(|marker| marker.strip_prefix("output of terminal ")) {
            let (name, is_last) = name.strip_suffix(" after Ctrl-C").map_or((name, false), |name| (name, true));
            let terminal = session.terminals.get_mut(name).unwrap_or_else(|| panic!("{at}: no terminal {name}"));
            if is_last {
                if cfg!(target_os = "linux") {
                    wait_until("a handler of Ctrl-C", || terminal.handles_interrupt());
                }
                terminal.interrupt();
            }
            let terminal = &session.terminals[name];
            terminal.await_output(&session.with_ports(&block.content), &at);
        }
        if !is_run(block) {
            continue;
        }
        let next = page.blocks.get(number + 1).filter(|next| next.language == "text");
        let output = next.filter(|next| {
            let between = &page.text[block.range.end..next.range.start];
            between.trim_matches(['`', '\n', ' ']) == "text"
        });
        session.run(block, output, &at);
        runs += 1;
    }
    assert!(runs > 0, "{path} has no commands");
}

macro_rules! pages {
    ($($test:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(#[test] fn $test() { run($path); })*
    };
}

pages! {
    activation: "docs/implementation-repository.md",
    activation_in_the_tutorial: "docs/tutorial/activation.md",
    architectures: "docs/architectures.md",
    authorization: "docs/authorization.md",
    callbacks: "docs/tutorial/callbacks.md",
    configuration: "docs/configuration.md",
    configurator: "docs/configurator.md",
    deployment: "docs/deployment.md",
    event: "docs/event-service.md",
    from_other_event_services: "docs/porting/events.md",
    first_service: "docs/tutorial/first-service.md",
    servers_side_by_side: "docs/porting/servers.md",
    from_omniorb: "docs/porting/omniorb.md",
    imaging: "docs/imaging.md",
    interface_repository: "docs/interface-repository.md",
    life_cycle: "docs/life-cycle.md",
    media_flows: "docs/media-flows.md",
    naming: "docs/naming-service.md",
    naming_in_the_tutorial: "docs/tutorial/naming.md",
    notification: "docs/notification-service.md",
    orchestra: "docs/orchestra.md",
    persistence: "docs/tutorial/persistence.md",
    property: "docs/property-service.md",
    proxy: "docs/proxy.md",
    security: "docs/tutorial/security.md",
    tls_site: "docs/tls-site.md",
    trading: "docs/trading-service.md",
}

#[test]
fn each_page_with_commands_is_run() {
    let pages = book();
    let with_commands =
        pages.iter().filter(|page| page.blocks.iter().any(is_run)).map(|page| page.path.to_str().unwrap());
    let mut tested = PAGES.to_vec();
    tested.sort_unstable();
    assert_eq!(with_commands.collect::<Vec<_>>(), tested, "pages with commands (left), and those of `pages!`");
}

#[test]
fn an_ellipsis_stands_for_any_characters() {
    assert!(matches("IOR:…", "IOR:00") && matches("a…c", "abbc") && matches("a…b…", "a1b2") && matches("ab", "ab"));
    assert!(!matches("IOR:…", "corbaloc:") && !matches("a…c", "ab") && !matches("ab", "abc"));
}
