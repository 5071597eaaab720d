//! A small server of the paper's service, in this process or, for agents, in one of its own.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::{env, fs, process};

use spandrel_orchestra::load::GREETING;
use spandrel_test_support::{ChildProcess, exit_without};

/// The variable with the arguments of a server that is this program, started again.
const ARGUMENTS: &str = "ORCHESTRA_TEST_SERVER";
/// The variable with the folder of its program.
const FOLDER: &str = "ORCHESTRA_TEST_FOLDER";
/// The lifetime of a server if the folder of its program is not removed either.
const LIFETIME: Duration = Duration::from_secs(120);

/// The way in which a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Steady,
    /// Half of the octets.
    Short,
    /// Resets connections after the request.
    Reset,
    /// Sends another text as the greeting.
    WrongGreeting,
    /// Another octet at the end.
    WrongReply,
    /// Reads the request, and never answers.
    Silent,
    /// One connection at a time; waits once, before it answers this request.
    Stall(u64, Duration),
    /// Ends the process after this request.
    End(u64),
}

/// Starts a server in this process. It serves until the process ends.
pub(crate) fn start(behaviour: Behaviour, has_greeting: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let served = Arc::clone(&served);
            let answer = move || _ = answer(&stream, behaviour, has_greeting, &served);
            match behaviour {
                Behaviour::Stall(..) => answer(),
                _ => drop(thread::spawn(answer)),
            }
        }
    });
    address
}

fn answer(mut stream: &TcpStream, behaviour: Behaviour, has_greeting: bool, served: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    if has_greeting {
        stream.write_all(if behaviour == Behaviour::WrongGreeting { b"Howdy\n\0" } else { GREETING })?;
    }
    let mut request = [0; 4];
    if behaviour == Behaviour::Reset {
        // A connection that is closed with octets not yet received is reset.
        spandrel_test_support::retry_interrupted(|| stream.peek(&mut request))?;
        return Ok(());
    }
    stream.read_exact(&mut request)?;
    let octets: usize = std::str::from_utf8(&request).unwrap().parse().unwrap();
    match behaviour {
        Behaviour::Short => return stream.write_all(&vec![b'A'; octets / 2]),
        Behaviour::Stall(number, time) if served.fetch_add(1, Ordering::Relaxed) == number => {
            let (_sender, never) = mpsc::channel::<()>();
            _ = never.recv_timeout(time);
        }
        Behaviour::End(number) if served.fetch_add(1, Ordering::Relaxed) == number => process::exit(9),
        _ => {}
    }
    if behaviour != Behaviour::Silent {
        let mut reply = vec![b'A'; octets];
        if behaviour == Behaviour::WrongReply {
            reply[octets - 1] = b'B';
        }
        stream.write_all(&reply)?;
    }
    // The client closes first.
    stream.read_to_end(&mut Vec::new()).map(drop)
}

/// Serves until it is killed; the first argument is the architecture.
fn serve(arguments: &str) -> ! {
    let words: Vec<&str> = arguments.split(' ').collect();
    if words[0] == "fails" {
        eprintln!("the configuration of the server is wrong");
        process::exit(7);
    }
    let behaviour = if words[0] == "dies" { Behaviour::End(60) } else { Behaviour::Steady };
    let address = start(behaviour, !words.contains(&"--no-greeting"));
    println!("\nlistening {address}");
    std::io::stdout().flush().unwrap();
    // An agent that was killed does not end it.
    exit_without(Path::new(&env::var_os(FOLDER).expect("the program sets it")));
    let (_sender, never) = mpsc::channel::<()>();
    _ = never.recv_timeout(LIFETIME);
    process::exit(1);
}

/// A program for the configuration of an agent: starts this one as a server.
pub(crate) fn program(folder: &Path) -> PathBuf {
    let this = env::current_exe().unwrap();
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'test server 1.2.3' && exit\n\
         export {FOLDER}='{}'\n\
         {ARGUMENTS}=\"$*\" exec '{}' server::a_server_in_a_process_of_its_own_tells_its_address --exact --nocapture\n",
        folder.display(),
        this.display()
    );
    executable(&folder.join("server.sh"), &text)
}

/// Writes a program that the system can execute.
pub(crate) fn executable(path: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;

    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_owned()
}

/// This program is also the server: then it has arguments in its environment, and this test does not return.
#[test]
fn a_server_in_a_process_of_its_own_tells_its_address() {
    if let Ok(arguments) = env::var(ARGUMENTS) {
        serve(&arguments);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = process::Command::new(program(folder.path()));
    let mut server = ChildProcess::start(command.args(["steady", "--no-greeting"]).stdout(process::Stdio::piped()));
    let lines = std::io::BufReader::new(server.stdout.take().unwrap()).lines();
    let address =
        lines.map_while(Result::ok).find_map(|line| line.strip_prefix("listening ").map(str::to_owned)).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"0003").unwrap();
    let mut reply = [0; 3];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"AAA");
}
