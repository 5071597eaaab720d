//! A naming service, objects of every type, and a proxy in this process; and a client that sends any octets.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spandrel::authorization::Authorizer;
use spandrel::dynamic::{DescribedCall, DescribedServant, Descriptions, NvList, RequestError, describe, describe_file};
use spandrel::services::cos_naming::{NameComponent, NamingContextExt};
use spandrel::types::Any;
use spandrel::{CompletionStatus, Endpoint, ObjectRef, Orb, Poa, SystemException};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_proxy::http::{Authentication, HttpLimits, HttpServer, TlsFiles, Tokens};
use spandrel_proxy::{CallLimits, Catalogue, Exposure, Proxy};
use spandrel_test_support::{HttpResponse, http_exchange, http_request};

/// The longest wait of a client.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
/// The token of the client `tester`.
pub(crate) const TOKEN: &str = "0123456789abcdef-tester";
/// The same in a header.
pub(crate) const AUTHORIZATION: &str = "Authorization: Bearer 0123456789abcdef-tester\r\n";

/// The interface of the test's own object.
pub(crate) const BANK: &str = "module Bank {
    /** Why a withdrawal is refused. */
    enum Reason { /** There is too little. */ overdrawn, closed };
    /** A withdrawal is refused. */
    exception Refused { Reason why; long long missing; };
    /** An account of a customer. */
    interface Account {
        /** The customer. */
        readonly attribute string owner;
        attribute long limit;
        /** Adds cents, and returns the balance. */
        long long deposit(in long long cents);
        long long withdraw(in long long cents) raises (Refused);
        /** Waits until `release` is called. */
        void hold();
        void release();
        oneway void note(in string text);
        /** Ends in the system exception with this name. */
        void fail(in string name);
        any reflect(in any value, out Object reference);
    };
};";

/// The parts of a test.
pub(crate) struct Fixture {
    pub(crate) http: Option<HttpServer>,
    pub(crate) address: SocketAddr,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) objects: Orb,
    pub(crate) account: Arc<Account>,
    client: Orb,
    naming: Option<NamingService>,
    _data: tempfile::TempDir,
}

/// How a fixture differs from the usual one.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) exposures: Option<Vec<Exposure>>,
    pub(crate) authorizer: Option<Authorizer>,
    pub(crate) authentication: Option<Authentication>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) calls: CallLimits,
    pub(crate) http: HttpLimits,
    /// Further arguments of the ORB that the proxy calls with.
    pub(crate) client_args: Vec<String>,
}

/// The state of the account `Bank/alice`.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) state: std::sync::Mutex<AccountState>,
    pub(crate) changed: std::sync::Condvar,
}

#[derive(Default)]
pub(crate) struct AccountState {
    pub(crate) balance: i64,
    pub(crate) limit: i32,
    pub(crate) holding: usize,
    pub(crate) released: bool,
    pub(crate) notes: Vec<String>,
}

impl Account {
    /// Waits until the condition holds.
    pub(crate) fn wait(&self, is_done: impl Fn(&AccountState) -> bool) {
        let state = self.state.lock().unwrap();
        let (state, waited) = self.changed.wait_timeout_while(state, TIMEOUT, |state| !is_done(state)).unwrap();
        drop(state);
        assert!(!waited.timed_out(), "the account did not change");
    }

    fn serve(&self, call: &DescribedCall<'_>, arguments: &mut NvList) -> Result<Any, RequestError> {
        let mut state = self.state.lock().unwrap();
        let void = || Any::write(spandrel::types::TypeCode::VOID, |_| Ok(()));
        let answer = match call.operation.name.as_str() {
            "_get_owner" => Any::new("Alice")?,
            "_get_limit" => Any::new(&state.limit)?,
            "_set_limit" => {
                state.limit = arguments.extract(0)?;
                void()?
            }
            "deposit" => {
                state.balance += arguments.extract::<i64>(0)?;
                Any::new(&state.balance)?
            }
            "withdraw" => {
                let missing = arguments.extract::<i64>(0)? - state.balance;
                if missing > 0 {
                    return Err(refused(missing));
                }
                state.balance = -missing;
                Any::new(&state.balance)?
            }
            "hold" => {
                state.holding += 1;
                self.changed.notify_all();
                let (mut state, _) = self.changed.wait_timeout_while(state, TIMEOUT, |state| !state.released).unwrap();
                state.holding -= 1;
                self.changed.notify_all();
                return Ok(void()?);
            }
            "release" => {
                state.released = true;
                void()?
            }
            "note" => {
                state.notes.push(arguments.extract(0)?);
                void()?
            }
            "fail" => return Err(exception(&arguments.extract::<String>(0)?).into()),
            "reflect" => {
                let value: Any = arguments.extract(0)?;
                arguments.set_any(1, &spandrel::dynamic::object_to_any(None, &spandrel::types::TypeCode::object())?)?;
                Any::new(&value)?
            }
            _ => return Err(SystemException::no_implement(0, CompletionStatus::No).into()),
        };
        self.changed.notify_all();
        Ok(answer)
    }
}

fn refused(missing: i64) -> RequestError {
    let idl = describe(BANK).expect("valid IDL");
    let of = idl.type_code("Bank::Refused").expect("an exception");
    let text = format!("{{why: overdrawn, missing: {missing}}}");
    let exception = spandrel::dynamic::DynAny::from_text(&of, &text).expect("a value").to_any().expect("a value");
    RequestError::Raised(spandrel::dynamic::UnknownUserException { exception })
}

fn exception(name: &str) -> SystemException {
    let no = CompletionStatus::No;
    match name {
        "BAD_PARAM" => SystemException::bad_param(1, no),
        "NO_PERMISSION" => SystemException::no_permission(2, no),
        "OBJECT_NOT_EXIST" => SystemException::object_not_exist(3, no),
        "TRANSIENT" => SystemException::transient(4, no),
        "NO_RESOURCES" => SystemException::no_resources(5, no),
        "TIMEOUT" => SystemException::timeout(6, no),
        "INTERNAL" => SystemException::internal(7, no),
        _ => SystemException::unknown(8, no),
    }
}

pub(crate) fn interop_idl() -> Descriptions {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/idl/interop.idl");
    describe_file(file, []).expect("the file of the interoperability suite")
}

impl Fixture {
    /// Serves the account `Bank/alice`.
    pub(crate) fn bank(settings: Settings) -> Self {
        let idl = describe(BANK).expect("valid IDL");
        let account = Arc::new(Account::default());
        let servant = {
            let account = Arc::clone(&account);
            move |call: &DescribedCall<'_>, arguments: &mut NvList| account.serve(call, arguments)
        };
        let servant = DescribedServant::described(idl.interface("Bank::Account").expect("an interface"), servant);
        let objects = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().expect("an ORB");
        let object = Poa::root(&objects).and_then(|poa| poa.activate(servant)).expect("an object");
        Self::with(settings, objects, account, &[("Bank", "alice", object)], idl)
    }

    /// Serves the objects of the interoperability suite as `Types/the_primitives` and so on.
    pub(crate) fn types() -> Self {
        let objects = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().expect("an ORB");
        let hub = spandrel_interop::server::activate(&objects).expect("the suite's objects");
        let hub = objects.string_to_object(&hub).expect("a reference");
        let get = |attribute: &str| -> ObjectRef {
            let hub =
                spandrel::dynamic::DynamicObject::new(hub.clone(), interop_idl().interface("Interop::Hub").unwrap());
            let any = hub.get(attribute).expect("an attribute");
            spandrel::dynamic::any_to_object(&any).expect("a reference").expect("an object")
        };
        let names = ["the_primitives", "the_strings", "the_sequences", "the_structs", "the_arrays"];
        let bound: Vec<_> = names.iter().map(|name| ("Types", *name, get(name))).collect();
        Self::with(Settings::default(), objects, Arc::default(), &bound, interop_idl())
    }

    /// Serves an object of this interface as `Echo/all`. Each operation has the parameters `in a`, `inout b` and `out c`:
    /// it returns `b`, sets `b` to `a` and `c` to `b`.
    pub(crate) fn echo(idl: &str, interface: &str) -> Self {
        let idl = describe(idl).unwrap_or_else(|error| panic!("{error}"));
        let servant = |_: &DescribedCall<'_>, arguments: &mut NvList| {
            let value = |at: usize| arguments.iter().nth(at).and_then(|item| item.value.clone()).expect("a value");
            let (a, b) = (value(0), value(1));
            arguments.set_any(1, &a)?;
            arguments.set_any(2, &b)?;
            Ok(b)
        };
        let servant = DescribedServant::described(idl.interface(interface).expect("an interface"), servant);
        let objects = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().expect("an ORB");
        let object = Poa::root(&objects).and_then(|poa| poa.activate(servant)).expect("an object");
        Self::with(Settings::default(), objects, Arc::default(), &[("Echo", "all", object)], idl)
    }

    pub(crate) fn with(
        settings: Settings,
        objects: Orb,
        account: Arc<Account>,
        bound: &[(&str, &str, ObjectRef)],
        idl: impl Into<Option<Descriptions>>,
    ) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let naming = NamingService::start(&objects, NamingOptions::new(data.path())).expect("a naming service");
        let address = objects.listen().expect("an address").remove(0);
        // As users configure it: by a URL.
        let url = format!("NameService=corbaloc::{}:{}/NameService", address.0, address.1);
        let mut args = [settings.client_args, vec!["-ORBInitRef".to_owned(), url]].concat();
        let client = Orb::builder().take_args(&mut args).expect("an option").build().expect("an ORB");
        let root = NamingContextExt::narrow(&naming.reference().clone()).expect("a context");
        let part = |id: &str| NameComponent { id: id.to_owned(), kind: String::new() };
        for (context, name, object) in bound {
            _ = root.bind_new_context(&[part(context)]);
            root.bind(&[part(context), part(name)], Some(object)).expect("a binding");
        }
        let all = vec![Exposure { name: format!("{}/*", bound[0].0), operations: Vec::new() }];
        let exposures = settings.exposures.unwrap_or(all);
        let catalogue = Catalogue::new(&client, &exposures, idl.into()).expect("a naming service");
        let authentication = settings
            .authentication
            .unwrap_or_else(|| Authentication { tokens: Tokens::one("tester", TOKEN), ..Authentication::default() });
        let proxy = Proxy::new(catalogue, settings.authorizer, settings.calls);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let http = {
            let _inside = runtime.enter();
            HttpServer::start(([127, 0, 0, 1], 0).into(), settings.tls.as_ref(), settings.http, |_| {
                proxy.router(authentication)
            })
        };
        let http = http.expect("a server");
        let address = http.address();
        Self { http: Some(http), address, runtime, objects, account, client, naming: Some(naming), _data: data }
    }

    /// The root of the naming service.
    pub(crate) fn root(&self) -> NamingContextExt {
        NamingContextExt::unchecked_narrow(self.naming.as_ref().expect("a naming service").reference())
    }

    /// Binds the object with a name of plain components by another name, too, whose components are identifiers and kinds.
    pub(crate) fn bind(&self, name: &[(&str, &str)], of: &str) {
        let part = |(id, kind): &(&str, &str)| NameComponent { id: (*id).to_owned(), kind: (*kind).to_owned() };
        let root = self.root();
        let object = root.resolve_str(of).expect("a name");
        root.bind(&name.iter().map(part).collect::<Vec<_>>(), object.as_ref()).expect("a binding");
    }

    /// Removes the binding of a name.
    pub(crate) fn unbind(&self, name: &[(&str, &str)]) {
        let part = |(id, kind): &(&str, &str)| NameComponent { id: (*id).to_owned(), kind: (*kind).to_owned() };
        self.root().unbind(&name.iter().map(part).collect::<Vec<_>>()).expect("a binding");
    }

    /// Sends a request with the tester's token, on a connection of its own.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> HttpResponse {
        let content = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        self.send_with(method, path, &format!("{AUTHORIZATION}{content}"), body)
    }

    /// Sends a request with these header lines.
    pub(crate) fn send_with(&self, method: &str, path: &str, headers: &str, body: &str) -> HttpResponse {
        let request = http_request(&format!("{method} {path}"), &format!("Host: test\r\n{headers}"), body);
        self.send_octets(&request).expect("a response")
    }

    /// Sends these octets, and reads the response to the end of the connection.
    pub(crate) fn send_octets(&self, octets: &[u8]) -> io::Result<HttpResponse> {
        http_exchange(self.address, octets)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a limit");
        stream
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.account.state.lock().unwrap().released = true;
        self.account.changed.notify_all();
        if let Some(http) = self.http.take() {
            self.runtime.block_on(http.stop());
        }
        self.naming.take().map(NamingService::stop);
        _ = self.client.shutdown();
        _ = self.objects.shutdown();
    }
}
