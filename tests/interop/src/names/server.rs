//! The server: an object, and a naming service it is bound in.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, bail};
use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, SystemException,
    server::{Replied, Servant, ServerCall},
    types::Interface,
};
use spandrel_test_support::free_port;

use super::NAMED;
use crate::naming_idl::{
    NameComponent, NamingContext, NamingContextExtServant, NamingContextExtSkeleton, NamingContextServant,
    naming_context::{BindError, BindNewContextError, NotFound, NotFoundReason, ResolveError},
    naming_context_ext::ResolveStrError,
};

/// The time that the naming service may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// An object that has only the implicit operations.
struct Named;

impl Servant for Named {
    fn repository_id(&self) -> &str {
        NAMED
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == NAMED
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.implicit(self)
    }
}

/// A naming service of one context: names of any length, by their components.
#[derive(Default)]
struct Names(Mutex<Vec<(Vec<NameComponent>, ObjectRef)>>);

impl NamingContextServant for Names {
    fn bind(&self, n: &[NameComponent], obj: Option<&ObjectRef>) -> Result<(), BindError> {
        let obj = obj.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?;
        self.0.lock().expect("no thread panics with the lock held").push((n.to_vec(), obj.clone()));
        Ok(())
    }

    fn resolve(&self, n: &[NameComponent]) -> Result<Option<ObjectRef>, ResolveError> {
        let names = self.0.lock().expect("no thread panics with the lock held");
        match names.iter().find(|(name, _)| name == n) {
            Some((_, object)) => Ok(Some(object.clone())),
            None => Err(NotFound { why: NotFoundReason::MissingNode, rest_of_name: n.to_vec() }.into()),
        }
    }

    fn bind_new_context(&self, _n: &[NameComponent]) -> Result<Option<NamingContext>, BindNewContextError> {
        Err(SystemException::no_implement(0, CompletionStatus::No).into())
    }
}

impl NamingContextExtServant for Names {
    fn resolve_str(&self, sn: &str) -> Result<Option<ObjectRef>, ResolveStrError> {
        let not_found = || NotFound { why: NotFoundReason::MissingNode, rest_of_name: Vec::new() };
        let names = self.0.lock().expect("no thread panics with the lock held");
        let found = names.iter().find(|(name, _)| text(name) == sn).ok_or_else(not_found)?;
        Ok(Some(found.1.clone()))
    }
}

/// A name as text (Naming Service 1.3, 2.4).
fn text(name: &[NameComponent]) -> String {
    let escaped = |part: &str| part.replace('\\', "\\\\").replace('/', "\\/").replace('.', "\\.");
    let component = |NameComponent { id, kind }: &NameComponent| match kind.as_str() {
        "" => escaped(id),
        kind => format!("{}.{}", escaped(id), escaped(kind)),
    };
    name.iter().map(component).collect::<Vec<_>>().join("/")
}

/// omniORB's naming service; dropping this ends its process.
#[derive(Debug)]
pub struct OmniNames {
    process: Child,
    /// The folder of its data, if it is removed with it.
    folder: Option<PathBuf>,
}

impl Drop for OmniNames {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
        if let Some(folder) = &self.folder {
            _ = fs::remove_dir_all(folder);
        }
    }
}

fn component(id: &str, kind: &str) -> NameComponent {
    NameComponent { id: id.into(), kind: kind.into() }
}

/// The names of the object: the second one contains each character that must be escaped.
fn names() -> [Vec<NameComponent>; 2] {
    [vec![component("a", ""), component("b", "kind")], vec![component("x/y.z\\", "k%# k")]]
}

fn named(orb: &Orb) -> Result<ObjectRef> {
    Ok(Poa::root(orb)?.activate(Named)?)
}

/// Serves a naming service of its own; returns the port.
///
/// # Errors
/// If the ORB cannot listen.
pub fn serve(orb: &Orb) -> Result<u16> {
    let (context, object) = (Names::default(), named(orb)?);
    for name in names() {
        context.bind(&name, Some(&object))?;
    }
    let context = Poa::root(orb)?.activate(NamingContextExtSkeleton::new(context))?;
    orb.set_object_key_alias("NameService", &context)?;
    Ok(orb.listen()?[0].1)
}

/// Starts omniORB's naming service and binds the object in it; returns the service and its port.
///
/// # Errors
/// If it cannot be started, or refuses a name.
pub fn serve_beside_omninames(orb: &Orb) -> Result<(OmniNames, u16)> {
    let (running, port) = OmniNames::start(orb)?;
    let object = named(orb)?;
    let context: NamingContext = root_context(orb, port)?.unchecked_narrow();
    let [first, second] = names();
    context.bind_new_context(&first[..1])?;
    context.bind(&first, Some(&object))?;
    context.bind(&second, Some(&object))?;
    Ok((running, port))
}

impl OmniNames {
    /// Starts the service and waits for its root context; returns its port on the loopback interface, too.
    ///
    /// # Errors
    /// If it cannot be started, or does not answer.
    pub fn start(orb: &Orb) -> Result<(Self, u16)> {
        let port = free_port();
        let folder = env::temp_dir().join(format!("spandrel-names-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut running = Self::start_in(orb, &folder, port)?;
        running.folder = Some(folder);
        Ok((running, port))
    }

    /// As [`start`](Self::start), at a port, with data in a folder that remains.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_in(orb: &Orb, folder: &Path, port: u16) -> Result<Self> {
        let mut command = Command::new("omniNames");
        command.args(["-start", &port.to_string(), "-always", "-datadir"]).arg(folder);
        command.args(["-ORBendPointPublish", "giop:tcp:127.0.0.1:"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().context("cannot start omniNames (package omniorb-nameserver)")?;
        let running = Self { process, folder: None };
        wait_for_context(orb, port)?;
        Ok(running)
    }
}

/// The root context of the service at a port.
///
/// # Errors
/// None for a port number.
pub fn root_context(orb: &Orb, port: u16) -> Result<ObjectRef> {
    Ok(orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/NameService"))?)
}

fn wait_for_context(orb: &Orb, port: u16) -> Result<()> {
    let object = root_context(orb, port)?;
    let deadline = Instant::now() + START_TIMEOUT;
    while !object.is_a(NamingContext::REPOSITORY_ID).unwrap_or(false) {
        if Instant::now() > deadline {
            bail!("omniNames did not answer within {START_TIMEOUT:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
