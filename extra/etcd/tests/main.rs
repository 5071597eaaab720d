//! The naming graph in etcd: the operations of a store, races between servers, and the death of servers and members.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spandrel::services::cos_naming::naming_context::{BindError, ResolveError};
use spandrel::services::cos_naming::{NameComponent, NamingContextExt};
use spandrel::types::Ior;
use spandrel::{CompletionStatus, Orb, SystemExceptionKind};
use spandrel_naming::store::{ContextId, IfBound, StoreError, Target};
use spandrel_naming::{RedbStore, RedbStoreOptions, Store};
use spandrel_naming_etcd::{EtcdOptions, EtcdStore};
use spandrel_test_support::{free_port, wait_until};

/// A process that is killed when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// The members of a cluster of etcd, and the folder of their data.
struct Cluster {
    members: Vec<Process>,
    urls: Vec<String>,
    _data: tempfile::TempDir,
}

impl Cluster {
    fn start(size: usize) -> Self {
        let data = tempfile::tempdir().unwrap();
        let ports: Vec<[u16; 2]> = (0..size).map(|_| [0; 2].map(|_| free_port())).collect();
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let peers = ports.iter().enumerate().map(|(nth, [_, peer])| format!("m{nth}={}", url(*peer)));
        let peers = peers.collect::<Vec<_>>().join(",");
        let members = ports.iter().enumerate().map(|(nth, [client, peer])| {
            let mut command = Command::new("etcd");
            command.arg("--name").arg(format!("m{nth}")).arg("--data-dir").arg(data.path().join(format!("m{nth}")));
            for (option, value) in [
                ("--listen-client-urls", url(*client)),
                ("--advertise-client-urls", url(*client)),
                ("--listen-peer-urls", url(*peer)),
                ("--initial-advertise-peer-urls", url(*peer)),
                ("--initial-cluster", peers.clone()),
                ("--log-level", "error".to_owned()),
            ] {
                command.arg(option).arg(value);
            }
            let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            Process(started.expect("etcd is installed (package etcd-server)"))
        });
        let members = members.collect();
        Self { members, urls: ports.iter().map(|[client, _]| url(*client)).collect(), _data: data }
    }

    fn options(&self, prefix: &str) -> EtcdOptions {
        let (members, prefix) = (self.urls.clone(), prefix.to_owned());
        EtcdOptions { members, prefix, timeout: Duration::from_secs(8) }
    }

    /// A store, once the cluster answers.
    fn store(&self, prefix: &str) -> EtcdStore {
        let mut store = None;
        wait_until("etcd", || {
            store = EtcdStore::open(&self.options(prefix)).ok();
            store.is_some()
        });
        store.unwrap()
    }
}

fn step(id: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: String::new() }
}

fn object(nth: usize) -> Target {
    Target::Object(Ior { type_id: format!("IDL:Object{nth}:1.0"), profiles: Vec::new() })
}

/// A store and its contexts by numbers, since ids differ.
struct Numbered<'s> {
    store: &'s dyn Store,
    contexts: Vec<ContextId>,
}

impl Numbered<'_> {
    /// Runs the operation that these numbers choose, and describes its outcome.
    fn run(&mut self, [kind, context, name, target]: [usize; 4]) -> String {
        let context = self.contexts[context % self.contexts.len()];
        let name = step(["a", "b", "c", "d/e", ""][name % 5]);
        let bound = Target::Context(self.contexts[target % self.contexts.len()]);
        let numbers: HashMap<ContextId, usize> =
            self.contexts.iter().enumerate().map(|(nth, context)| (*context, nth)).collect();
        let failed = |error: StoreError| match error {
            StoreError::NoContext(context) => format!("no context {}", numbers[&context]),
            StoreError::NotEmpty(context) => format!("{} is not empty", numbers[&context]),
            other => other.to_string(),
        };
        let end = |result: Result<(), StoreError>| result.map_or_else(failed, |()| "done".to_owned());
        let created = match kind % 12 {
            0..=1 => return end(self.store.bind(context, &name, &object(target), IfBound::Fail)),
            2..=3 => return end(self.store.bind(context, &name, &object(target), IfBound::Replace)),
            4 => return end(self.store.bind(context, &name, &bound, IfBound::Replace)),
            5 => return end(self.store.unbind(context, &name)),
            6 => return end(self.store.destroy(context)),
            7 => {
                return match self.store.lookup(context, &name) {
                    Ok(Target::Context(context)) => format!("context {}", numbers[&context]),
                    Ok(other) => format!("{other:?}"),
                    Err(error) => failed(error),
                };
            }
            8 => {
                let page = self.store.list(context, (target % 2 == 0).then_some(&name), target % 4 + 1);
                return page.map_or_else(failed, |page| format!("{page:?}"));
            }
            9 => return self.store.path(context).map_or_else(failed, |path| format!("{path:?}")),
            10 => self.store.new_context(),
            _ => self.store.bind_new_context(context, &name),
        };
        match created {
            Ok(context) => {
                self.contexts.push(context);
                "created".to_owned()
            }
            Err(error) => failed(error),
        }
    }
}

#[test]
fn random_operations_have_the_outcomes_of_the_store_in_a_file() {
    let cluster = Cluster::start(1);
    let folder = tempfile::tempdir().unwrap();
    let file = RedbStore::open(&folder.path().join("naming.redb"), &RedbStoreOptions::default()).unwrap();
    let etcd = cluster.store("random/");
    let mut stores = [&file as &dyn Store, &etcd].map(|store| Numbered { store, contexts: vec![ContextId::ROOT] });
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for nth in 0..2_000 {
        let numbers = [0; 4].map(|_| random.usize(..1_000));
        let [expected, found] = stores.each_mut().map(|store| store.run(numbers));
        assert_eq!(found, expected, "seed {seed}, operation {nth}: {numbers:?}");
    }
    assert!(stores[0].contexts.len() > 20);
}

#[test]
fn of_a_destruction_and_a_binding_by_two_servers_one_succeeds() {
    let cluster = Cluster::start(1);
    let [first, second] = [0; 2].map(|_| Arc::new(cluster.store("race/")));
    let mut bound = 0;
    for nth in 0..100 {
        let context = first.bind_new_context(ContextId::ROOT, &step(&nth.to_string())).unwrap();
        let binding = {
            let second = Arc::clone(&second);
            std::thread::spawn(move || second.bind(context, &step("x"), &object(1), IfBound::Fail))
        };
        let destroyed = first.destroy(context);
        match (binding.join().unwrap(), destroyed) {
            (Ok(()), Err(StoreError::NotEmpty(_))) => bound += 1,
            (Err(StoreError::NoContext(_)), Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }
    eprintln!("the binding came first {bound} times of 100");
}

/// Starts a naming server over the cluster; returns its address.
fn server(cluster: &Cluster, data: &Path) -> (Process, String) {
    server_at(cluster, data, "iiop://127.0.0.1:0", &[])
}

/// As [`server`], at an endpoint and with further arguments.
fn server_at(cluster: &Cluster, data: &Path, endpoint: &str, arguments: &[&str]) -> (Process, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-naming-etcd"));
    command.arg("--data").arg(data).args(["--listen", endpoint, "--prefix", "served/"]).args(arguments);
    cluster.urls.iter().for_each(|url| _ = command.args(["--etcd", url]));
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("ready: NameService corbaloc::").unwrap_or_else(|| panic!("{line}"));
    let address = url.strip_suffix("/NameService").unwrap().to_owned();
    (Process(process), address)
}

#[test]
fn the_death_of_a_server_and_of_a_member_loses_nothing() {
    let mut cluster = Cluster::start(3);
    drop(cluster.store("served/"));
    let folders = [0; 3].map(|_| tempfile::tempdir().unwrap());
    let mut servers: Vec<_> = folders.iter().map(|folder| server(&cluster, folder.path())).collect();
    let addresses: Vec<String> = servers.iter().map(|(_, address)| format!(":{address}")).collect();
    // Clients know all servers.
    let url = format!("corbaloc:{}/NameService", addresses.join(","));
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (url, stop) = (url.clone(), Arc::clone(&stop));
            std::thread::spawn(move || {
                let orb = Orb::builder().request_timeout(Some(Duration::from_secs(9))).build().unwrap();
                let object = orb.string_to_object("corbaloc::127.0.0.1:9/object").unwrap();
                let (mut bound, mut longest, mut last) = (Vec::new(), Duration::ZERO, Instant::now());
                for nth in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let root = NamingContextExt::unchecked_narrow(&orb.string_to_object(&url).unwrap());
                    let id = format!("{worker}-{nth}");
                    match root.bind(&[step(&id)], Some(&object)) {
                        Ok(()) => {
                            bound.push(id);
                            longest = longest.max(last.elapsed());
                            last = Instant::now();
                        }
                        // A change whose outcome is unknown.
                        Err(BindError::System(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                (bound, longest.max(last.elapsed()))
            })
        })
        .collect();
    let store = cluster.store("served/");
    let count = || store.list(ContextId::ROOT, None, 100_000).map_or(0, |found| found.len());
    wait_until("bindings", || count() > 50);
    servers.remove(0);
    let before = count();
    wait_until("bindings after the death of a server", || count() > before + 50);
    cluster.members.remove(0);
    let before = count();
    wait_until("bindings after the death of a member", || count() > before + 50);
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        let (bound, longest) = worker.join().unwrap();
        assert!(bound.len() > 10 && longest < Duration::from_secs(10), "{} {longest:?}", bound.len());
        eprintln!("{} bindings, longest gap {longest:?}", bound.len());
        for id in bound {
            assert!(store.lookup(ContextId::ROOT, &step(&id)).is_ok(), "{id} is lost");
        }
    }
}

/// Calls that a client makes by nothing but the reference of a context. If it is connected to a server that has died, its
/// first call may have run there: it then fails as the standard requires, and the next one goes to the other server.
fn resolves_and_binds(context: &NamingContextExt, new: &str) {
    let object = match context.resolve(&[step("grace")]) {
        Err(ResolveError::System(lost)) if lost.kind() == SystemExceptionKind::CommFailure => {
            assert_eq!(lost.completed(), CompletionStatus::Maybe, "{lost}");
            context.resolve(&[step("grace")])
        }
        outcome => outcome,
    };
    let object = object.unwrap().expect("a reference");
    context.bind(&[step(new)], Some(&object)).unwrap();
    assert!(context.resolve(&[step(new)]).unwrap().expect("a reference").is_equivalent(&object));
}

/// Lists a context by omniORB's client, which has its reference.
fn list_by_omniorb(reference: &str) -> Option<String> {
    let Ok(output) =
        Command::new("nameclt").args(["-ORBInitRef", &format!("NameService={reference}"), "list"]).output()
    else {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "nameclt is absent (package omniorb)");
        eprintln!("absent: nameclt (package omniorb)");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    Some(text)
}

#[test]
fn references_of_contexts_lead_to_the_other_server_when_one_has_died() {
    let cluster = Cluster::start(1);
    drop(cluster.store("served/"));
    let folders = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let addresses = [0; 2].map(|_| format!("127.0.0.1:{}", free_port()));
    let publish = format!("-ORBPublish {}", addresses.join(","));
    let mut servers = Vec::new();
    for (folder, address) in folders.iter().zip(&addresses) {
        servers.push(server_at(&cluster, folder.path(), &format!("iiop://{address}"), &["--orb", &publish]));
    }
    let clients = [0; 3].map(|_| Orb::builder().build().unwrap());
    let [first, second] = addresses.each_ref().map(|address| {
        let root = clients[0].string_to_object(&format!("corbaloc::{address}/NameService")).unwrap();
        NamingContextExt::unchecked_narrow(&root)
    });
    // Each server hands out references with both addresses, the same ones.
    let created = first.bind_new_context(&[step("bank")]).unwrap().expect("a context");
    let found = second.resolve(&[step("bank")]).unwrap().expect("a context");
    assert_eq!(created.as_object().to_string(), found.to_string());
    let object = clients[0].string_to_object("corbaloc::127.0.0.1:9/object").unwrap();
    created.bind(&[step("grace")], Some(&object)).unwrap();

    let reference = created.as_object().to_string();
    let by_reference = |client: &Orb| NamingContextExt::unchecked_narrow(&client.string_to_object(&reference).unwrap());
    let connected = by_reference(&clients[1]);
    resolves_and_binds(&connected, "before");
    // The server that is dead is at the first address, at which the clients are connected, then at the second.
    for dead in 0..2 {
        servers.remove(dead);
        resolves_and_binds(&connected, &format!("connected-{dead}"));
        resolves_and_binds(&by_reference(&clients[2]), &format!("new-{dead}"));
        if let Some(list) = list_by_omniorb(&reference) {
            assert!(list.contains("grace") && list.contains(&format!("new-{dead}")), "{list}");
        }
        let endpoint = format!("iiop://{}", addresses[dead]);
        let restarted = server_at(&cluster, folders[dead].path(), &endpoint, &["--orb", &publish]);
        servers.insert(dead, restarted);
    }
}
