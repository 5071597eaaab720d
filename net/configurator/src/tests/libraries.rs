//! Services of shared libraries: one in Rust (`examples/plugin_echo.rs`), and one in C (`tests/plugin/ticks.c`).

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use spandrel_reactor::Reactor;
use spandrel_test_support::read_some;
use tempfile::TempDir;

use crate::plugin::library::find_library;
use crate::{Catalogue, Configurator};

/// A configurator with a running reactor, and a folder for libraries.
struct Process {
    reactor: Reactor,
    configurator: Configurator,
    folder: TempDir,
}

impl Process {
    fn new() -> Self {
        let reactor = Reactor::new().unwrap();
        let running = reactor.clone();
        std::thread::spawn(move || running.run().unwrap());
        let configurator = Configurator::new(reactor.registry(), Catalogue::new());
        Self { reactor, configurator, folder: tempfile::tempdir().unwrap() }
    }

    /// A copy of the library in Rust, which Cargo has built with the tests.
    fn rust_library(&self) -> PathBuf {
        let tests = std::env::current_exe().unwrap();
        let built = tests.ancestors().nth(2).unwrap().join(format!("examples/{DLL_PREFIX}plugin_echo{DLL_SUFFIX}"));
        let file = self.folder.path().join(format!("{DLL_PREFIX}plugin_echo{DLL_SUFFIX}"));
        fs::copy(&built, &file).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
        file
    }

    /// Carries a directive out; LIB stands for the folder of the libraries.
    fn process(&self, directive: &str) -> Result<crate::Changes, String> {
        let text = directive.replace("LIB", self.folder.path().to_str().unwrap());
        self.configurator.process_text(&text).map_err(|error| error.to_string())
    }

    fn info(&self, name: &str) -> String {
        self.configurator.repository().info(name).unwrap()
    }

    /// The libraries that are still mapped.
    fn kept(&self) -> usize {
        self.configurator.repository().kept_libraries().len()
    }

    fn address(&self, name: &str) -> String {
        self.info(name).split('/').next().unwrap().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.configurator.close();
        self.reactor.stop();
    }
}

fn connect(address: &str) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client
}

#[test]
fn a_library_in_rust_serves_and_is_unmapped() {
    let process = Process::new();
    process.rust_library();
    let changes = process.process("dynamic Echo Service_Object * LIB/plugin_echo:make_echo() '0'").unwrap();
    assert_eq!(changes.added, ["Echo"]);
    assert!(process.info("Echo").ends_with("/tcp # echo"));
    let mut client = connect(&process.address("Echo"));
    client.write_all(b"hello").unwrap();
    let mut octets = [0; 5];
    client.read_exact(&mut octets).unwrap();
    assert_eq!(&octets, b"hello");
    let address = process.address("Echo");
    // Another service of the same library, linked before this one ends.
    process.process("dynamic Faulty Service_Object * LIB/plugin_echo:make_faulty()").unwrap();
    assert!(process.configurator.remove("Echo").unwrap().warnings.is_empty());
    assert_eq!(process.kept(), 0, "a library in use is not kept without a user");
    process.configurator.remove("Faulty").unwrap();
    assert_eq!(process.kept(), 0, "the connection ends with the library");
    assert_eq!(read_some(&client, &mut octets).unwrap_or(0), 0);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_suspended_service_of_a_library_accepts_nothing() {
    let process = Process::new();
    process.rust_library();
    process.process("dynamic Echo Service_Object * LIB/plugin_echo:make_echo() inactive").unwrap();
    let mut client = connect(&process.address("Echo"));
    client.write_all(b"x").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(read_some(&client, &mut [0]).is_err());
    process.configurator.resume("Echo").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(read_some(&client, &mut [0]).unwrap(), 1);
}

#[test]
fn failures_and_panics_of_a_library_are_errors() {
    let process = Process::new();
    process.rust_library();
    let faulty =
        |fault: &str| process.process(&format!("dynamic F Service_Object * LIB/plugin_echo:make_faulty() '{fault}'"));
    let place = "directive, column 1: the service `F`";
    assert_eq!(faulty("fail=init").unwrap_err(), format!("{place}: the service refuses"));
    let panicked = "it has panicked: the service panics in";
    assert_eq!(faulty("panic=init").unwrap_err(), format!("{place}: {panicked} init"));
    assert_eq!(faulty("panic=resume").unwrap_err(), format!("{place}: {panicked} resume"));
    faulty("panic=info").unwrap();
    assert_eq!(process.info("F"), "has panicked: the service panics in info");
    faulty("panic=fini").unwrap();
    assert_eq!(process.configurator.remove("F").unwrap().warnings, [format!("the service `F`: {panicked} fini")]);
    assert_eq!(process.kept(), 0);
    assert_eq!(
        process.process("dynamic F Service_Object * LIB/plugin_echo:make_nothing()").unwrap_err().rsplit(' ').next(),
        Some("`make_nothing`")
    );
    let text = process.process("dynamic F Service_Object * LIB/plugin_echo:make_capitals()").unwrap_err();
    assert!(text.ends_with(":make_capitals() makes a Module, no Service_Object"), "{text}");
}

#[test]
fn other_files_are_no_libraries() {
    let process = Process::new();
    fs::write(process.folder.path().join("text"), "no library").unwrap();
    let text = process.process("dynamic F Service_Object * LIB/text:make()").unwrap_err();
    assert!(text.contains("cannot map the library"), "{text}");
    fs::create_dir(process.folder.path().join("folder")).unwrap();
    let text = process.process("dynamic F Service_Object * LIB/folder:make()").unwrap_err();
    assert!(text.contains("there is no library"), "{text}");
}

#[test]
fn a_folder_that_was_searched_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let folders = [other.path().to_owned(), folder.path().join("."), other.path().to_owned()];
    let text = find_library("nowhere", folder.path(), &folders).unwrap_err();
    let (_, named) = text.rsplit_once(" in ").unwrap();
    assert_eq!(named, format!("{}, {}", folder.path().display(), other.path().display()));
}

/// Libraries in C, which are built with the system's compiler.
#[cfg(target_os = "linux")]
mod in_c {
    use std::path::Path;
    use std::process::Command;

    use spandrel_test_support::{TEST_TIMEOUT, eventually};

    use super::*;

    /// Compiles a source file as `libNAME.so` in the folder, in one step for those who look at it.
    fn compile(folder: &Path, source: &Path, name: &str, flags: &[&str]) {
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
        let (file, new) = (folder.join(format!("lib{name}.so")), folder.join("new.so"));
        let output = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-I", header])
            .args(flags)
            .args([source, Path::new("-o"), &new])
            .output()
            .expect("a C compiler (cc)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(new, file).unwrap();
    }

    fn ticks(process: &Process, version: &str) {
        let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plugin/ticks.c"));
        compile(process.folder.path(), source, "ticks", &[&format!("-DVERSION=\"{version}\"")]);
    }

    const TICKS: &str = "dynamic Ticks Service_Object * LIB/ticks:make_ticks() '-p 0'";

    fn greeting(process: &Process) -> String {
        let mut text = String::new();
        connect(&process.address("Ticks")).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_library_in_c_has_handlers_timers_and_notices() {
        let process = Process::new();
        ticks(&process, "1");
        process.process(TICKS).unwrap();
        eventually(|| {
            let text = greeting(&process);
            let words: Vec<&str> = text.split_whitespace().collect();
            words[1] != "0" && words[3] != "0"
        });
        let address = process.address("Ticks");
        assert!(process.configurator.remove("Ticks").unwrap().warnings.is_empty());
        eventually(|| process.kept() == 0); // a thread may still be inside a handler
        assert!(TcpStream::connect(address).is_err());
        assert_eq!(
            process.process(&TICKS.replace("-p 0", "-q 0")).unwrap_err().rsplit(": ").next(),
            Some("expected -p PORT or -t FILE")
        );
        assert_eq!(process.kept(), 0);
    }

    /// Also each service of one library: a handler that blocks delays its own service only.
    #[test]
    fn a_handler_that_blocks_delays_no_other_service() {
        let process = Process::new();
        ticks(&process, "1");
        let free = process.folder.path().join("free");
        process.process(&TICKS.replace("-p 0", "-b LIB/free")).unwrap();
        process.process(&TICKS.replace("Ticks ", "Other ")).unwrap();
        let mut blocked = connect(&process.address("Ticks"));
        let mut line = [0; 8];
        blocked.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"blocked\n");
        for _ in 0..3 {
            let mut text = String::new();
            connect(&process.address("Other")).read_to_string(&mut text).unwrap();
            assert!(text.starts_with("ticks "), "{text}");
        }
        // The reactor of the process runs.
        let (sender, called) = std::sync::mpsc::channel();
        process.reactor.registry().execute(move |_| sender.send(()).unwrap()).unwrap();
        called.recv_timeout(TEST_TIMEOUT).unwrap();
        // The service can be removed; what blocks is told.
        let warnings = process.configurator.remove("Ticks").unwrap().warnings;
        assert!(warnings[0].contains("1 of its threads have not ended"), "{warnings:?}");
        assert_eq!(process.kept(), 0, "the other service uses the library");
        process.configurator.remove("Other").unwrap();
        assert_eq!(process.kept(), 1);
        fs::write(free, "").unwrap();
        eventually(|| process.kept() == 0);
    }

    #[test]
    fn the_handlers_of_a_service_are_bounded_and_its_own() {
        let process = Process::new();
        ticks(&process, "1");
        let text = process.process(&TICKS.replace("-p 0", "-n 16384")).unwrap_err();
        assert!(text.ends_with("too many handlers"), "{text}");
        process.process(&TICKS.replace("-p 0", "-n 16383")).unwrap();
        process.process(&TICKS.replace("Ticks ", "Other ").replace("-p 0", "-n 16383")).unwrap();
    }

    #[test]
    fn a_suspended_library_in_c_accepts_nothing_until_it_is_resumed() {
        let process = Process::new();
        ticks(&process, "1");
        process.process(TICKS).unwrap();
        process.configurator.suspend("Ticks").unwrap();
        let mut client = connect(&process.address("Ticks"));
        client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(client.read(&mut [0; 64]).is_err());
        process.configurator.resume("Ticks").unwrap();
        client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        assert!(client.read(&mut [0; 64]).unwrap() > 0);
    }

    #[test]
    fn a_library_that_was_built_again_is_a_new_one() {
        let process = Process::new();
        ticks(&process, "1");
        let file = process.folder.path().join("svc.conf");
        fs::write(&file, "dynamic Ticks Service_Object * ticks:make_ticks() '-p 0'").unwrap();
        process.configurator.configure(std::slice::from_ref(&file)).unwrap();
        assert!(process.info("Ticks").ends_with("version 1"));
        assert!(process.configurator.reconfigure().unwrap().is_empty());
        ticks(&process, "2");
        assert_eq!(process.kept(), 0);
        assert_eq!(process.configurator.reconfigure().unwrap().replaced, ["Ticks"]);
        assert!(process.info("Ticks").ends_with("version 2"));
        assert_eq!(process.kept(), 0);
        // A build that is no library leaves the service as it is.
        fs::write(process.folder.path().join("libticks.so"), "broken").unwrap();
        assert!(process.configurator.reconfigure().is_err());
        assert!(process.info("Ticks").ends_with("version 2"));
        assert!(greeting(&process).starts_with("ticks "));
    }

    /// As while a library is copied or linked: the system's loader maps pages that the file does not have.
    #[test]
    fn incomplete_libraries_are_refused() {
        let process = Process::new();
        ticks(&process, "1");
        let (complete, part) = (process.folder.path().join("libticks.so"), process.folder.path().join("libpart.so"));
        let refused = || {
            let text = process.process("dynamic X Service_Object * LIB/part:make_ticks() '-p 0'").unwrap_err();
            assert!(text.contains("cannot map the library"), "{text}");
        };
        for library in [complete, process.rust_library()] {
            let content = fs::read(library).unwrap();
            let pages = (0..content.len()).step_by(4096).take(8);
            let cuts = (0..48).map(|cut| content.len() * cut / 48);
            for length in cuts.chain(pages).chain([content.len() - 1, content.len() - 70, 16, 63, 64, 100]) {
                fs::write(&part, &content[..length]).unwrap();
                refused();
                // A file that had its length before it had its content.
                fs::File::options().write(true).open(&part).unwrap().set_len(content.len() as u64).unwrap();
                if length < content.len() - 1 {
                    refused();
                }
            }
        }
        let text = process.process("dynamic X Service_Object * LIB/part:make_echo()").unwrap_err();
        assert!(text.contains("it is not complete"), "{text}");
        assert_eq!(process.kept(), 0);
        process.process(TICKS).unwrap();
    }

    #[test]
    fn a_library_stays_mapped_until_its_threads_have_ended() {
        let process = Process::new();
        ticks(&process, "1");
        let end = process.folder.path().join("end");
        process.process(&TICKS.replace("-p 0", "-t LIB/end")).unwrap();
        let warnings = process.configurator.remove("Ticks").unwrap().warnings;
        assert!(warnings[0].contains("1 of its threads have not ended"), "{warnings:?}");
        let kept = process.configurator.repository().kept_libraries();
        assert!(kept.len() == 1 && kept[0].file.ends_with("libticks.so") && kept[0].users > 0, "{kept:?}");
        fs::write(end, "").unwrap();
        eventually(|| process.kept() == 0);
    }

    #[test]
    fn libraries_of_other_versions_are_refused() {
        let process = Process::new();
        let source = process.folder.path().join("other.c");
        let refused = |text: &str, directive: &str| {
            fs::write(&source, format!("#include \"spandrel_service.h\"\n{text}")).unwrap();
            compile(process.folder.path(), &source, "other", &[]);
            process.process(&format!("dynamic X Service_Object * LIB/other:{directive}")).unwrap_err()
        };
        let text = refused("int x;", "x");
        assert!(text.ends_with("contains no services: it has no variable `spandrel_service_abi`"), "{text}");
        let text =
            refused("SPANDREL_SERVICE_EXPORT spandrel_service_abi_t spandrel_service_abi = {\"SPNDRLS\", 1, 1};", "x");
        assert!(text.ends_with("contains no services: its `spandrel_service_abi` has other content"), "{text}");
        let marked = "SPANDREL_SERVICE_EXPORT spandrel_service_abi_t spandrel_service_abi = {{'S','P','N','D','R','L','S','V'}, 1, 72};";
        let text = refused(marked, "x");
        assert!(
            text.contains("was built for version 1 of the interface") && text.ends_with("build it again"),
            "{text}"
        );
        let text = refused("SPANDREL_SERVICE_LIBRARY spandrel_service *make(void) { return 0; }", "make()");
        assert!(text.ends_with("the factory has made nothing"), "{text}");
        let text = refused("SPANDREL_SERVICE_LIBRARY spandrel_service x = {.size = 8};", "x");
        assert!(text.ends_with("its structure has 8 octets, not 80"), "{text}");
        let text = refused("SPANDREL_SERVICE_LIBRARY spandrel_service x = {.size = sizeof x, .kind = 1};", "x");
        assert!(text.ends_with("it has no `init` or no `info`"), "{text}");
    }
}
