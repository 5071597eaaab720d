//! An object with operations of every kind of type, and a server that the activator starts.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use spandrel::dynamic::{
    ArgMode, DescribedCall, DescribedServant, Descriptions, DynAny, NvList, RequestError, UnknownUserException,
    describe,
};
use spandrel::poa::{IdAssignmentPolicy, LifespanPolicy};
use spandrel::services::activation;
use spandrel::services::repository::fill;
use spandrel::types::{Any, TypeCode};
use spandrel::{Endpoint, Orb, Poa};

use crate::executable::{name, root};

const IDL: &str = r#"
#include <orb.idl>
/** Types and operations for tests. */
module Probe {
  /** The colour of a line. */
  enum Color { /** Like the sky at noon. */ blue, red, green };
  /** A place in the plane. */
  struct Point { /** Eastward, in metres. */ long x; double y; };
  typedef sequence<octet> Octets;
  typedef fixed<5, 2> Price;
  typedef long Grid[2][2];
  struct Line { string name; Point from; sequence<Point> others; Color color; };
  union Shape switch (Color) { case blue: Point point; case red: string text; default: boolean flag; };
  struct Tree;
  typedef sequence<Tree> Trees;
  struct Tree { string label; Trees below; };
  valuetype Node { public long number; public Node next; };
  valuetype Label string;
  union Choice switch (char) { case 'a': case 'b': long number; case 'c': sequence<octet> data; };
  exception Refused { /** The reason for people. */ string reason; long code; };
  /** Takes values of every kind, and returns them. */
  interface Everything {
    /** The level, in decibels. */
    attribute long level;
    /** Takes basic values. */
    string basic(in boolean b, in octet o, in short s, in unsigned long long u, in double d, in char c, in wchar w,
                 in string t, in wstring v, in Price f);
    Line constructed(in Line line, inout Shape shape, in Octets data, in Grid grid, in Tree tree);
    any dynamic(in any value, in CORBA::TypeCode type, in Object target, in Node node);
    /** Takes values of the other types. */
    Label others(in float fl, in long long l, in unsigned short us, in unsigned long ul, in long double ld, in Label title,
                 in Choice choice, in sequence<string<4> > words, in any nothing);
    /** Always raises an exception. */
    void refuse(in string reason) raises (Refused);
    oneway void notify(in string text);
  };
  /** Has an operation of the other interface. */
  interface Other { void refuse(in string reason) raises (Refused); };
};
"#;

type Calls = Arc<Mutex<Vec<(String, Vec<serde_json::Value>)>>>;

/// The object's server, in the process of the test.
pub(super) struct Probe {
    orb: Orb,
    /// The operations that ran, with the JSON of their arguments.
    calls: Calls,
}

fn json(value: &Any) -> serde_json::Value {
    serde_json::from_str(&DynAny::new(value).unwrap().to_json().unwrap()).unwrap()
}

impl Probe {
    /// Serves the objects, binds them as `probe/everything` and `probe/other`, and describes them in the repository.
    pub(super) fn start(naming: &str) -> Self {
        let repository = naming.replace("/NameService", "/InterfaceRepository");
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).init_ref("InterfaceRepository", &repository);
        let orb = orb.build().unwrap();
        let idl: Descriptions = describe(IDL).unwrap_or_else(|error| panic!("{error}"));
        fill(&orb.string_to_object(&repository).unwrap(), &idl).unwrap();
        let calls: Calls = Arc::default();
        let seen = Arc::clone(&calls);
        let refused = idl.type_code("Probe::Refused").unwrap();
        let run = move |call: &DescribedCall<'_>, list: &mut NvList| -> Result<Any, RequestError> {
            let sent = list.iter().filter(|item| item.mode != ArgMode::Out);
            let arguments = sent.filter_map(|item| item.value.clone()).collect::<Vec<_>>();
            let recorded = arguments.iter().map(json).collect();
            seen.lock().unwrap().push((call.operation.name.clone(), recorded));
            match call.operation.name.as_str() {
                "basic" => Ok(arguments[7].clone()),
                "others" => Ok(arguments[5].clone()),
                "constructed" | "dynamic" => Ok(arguments[0].clone()),
                "_get_level" => Ok(Any::new(7_i32).unwrap()),
                "refuse" => {
                    let text = format!("{{\"reason\":{},\"code\":42}}", json(&arguments[0]));
                    let exception = DynAny::from_text(&refused, &text).unwrap().to_any().unwrap();
                    Err(UnknownUserException { exception }.into())
                }
                _ => Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap()),
            }
        };
        let names = root(&orb, naming);
        let context = names.bind_new_context(&name("probe")).unwrap().unwrap();
        for (interface, bound) in [("Probe::Everything", "everything"), ("Probe::Other", "other")] {
            let servant = DescribedServant::described(idl.interface(interface).unwrap(), run.clone());
            let object = Poa::root(&orb).unwrap().activate(servant).unwrap();
            context.bind(&name(bound), Some(&object)).unwrap();
        }
        Self { orb, calls }
    }

    /// The arguments of the last call of an operation.
    pub(super) fn last(&self, operation: &str) -> Option<Vec<serde_json::Value>> {
        let calls = self.calls.lock().unwrap();
        calls.iter().rev().find(|(name, _)| name == operation).map(|(_, arguments)| arguments.clone())
    }

    /// The reference with another type in it.
    pub(super) fn reference_with_type(&self, reference: &str, type_id: &str) -> String {
        let mut ior = self.orb.string_to_object(reference).unwrap().ior().clone();
        ior.type_id = type_id.to_owned();
        self.orb.reference(ior).to_string()
    }

    pub(super) fn stop(&self) {
        self.orb.shutdown().unwrap();
    }
}

/// The arguments of a server that the activator starts.
const ARGUMENTS: &str = "TEST_SERVER_ARGUMENTS";

/// The configuration of an activator with the command `bank`, whose server is this test program, with metrics at an
/// address that nobody listens at.
pub(super) fn commands() -> String {
    let this = std::env::current_exe().unwrap();
    // The port is not assigned again soon.
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    format!(
        "[commands.bank]\nprogram = '/bin/sh'\nmetrics = '{address}'\n\
         arguments = ['-c', '{ARGUMENTS}=\"$*\" exec {} --exact console::probe::server --nocapture', 'sh']\n",
        this.display()
    )
}

#[test]
fn server() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    spandrel_test_support::exit_without(&std::env::current_dir().unwrap()); // in the data folder
    let mut args: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    let orb = activation::install(Orb::builder().listen(Endpoint::new("127.0.0.1", 0))).unwrap();
    let orb = orb.take_args(&mut args).unwrap().build().unwrap();
    let policies = [LifespanPolicy::Persistent.into(), IdAssignmentPolicy::UserId.into()];
    let poa = Poa::root(&orb).unwrap().create_poa("bank", None, policies).unwrap();
    poa.the_poa_manager().activate().unwrap();
    println!("the bank opens");
    activation::impl_is_ready(&orb).unwrap();
    orb.run_until_signal().unwrap();
}
