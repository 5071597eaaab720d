//! The client: each operation by its JSON arguments, whose results must be those of static stubs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use spandrel::{ObjectRef, Orb};

use super::json_cases;
use super::tools::{Server, executable, output, post};
use crate::idl::Hub;
use crate::suite::{Suite, TIME_LIMIT, Tally, not_nil};

/// Random values, as those of the seeds from 3 on.
const SEED: u32 = 7;
const TOKEN: &str = "0123456789abcdef-interop";

/// The program through which the calls go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tool {
    /// `spandrel call`, with the IDL file.
    Call,
    /// `spandrel proxy`, with the interface from a repository, and names from a naming service.
    Proxy,
    /// The console of `spandrel up`, with the interface from its repository.
    Console,
}

impl FromStr for Tool {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "call" => Self::Call,
            "proxy" => Self::Proxy,
            "console" => Self::Console,
            _ => bail!("unknown tool `{text}`: expected call, proxy or console"),
        })
    }
}

/// Calls the objects of a hub through a tool; `folder` is for its data. `say` receives a line for each case.
///
/// # Errors
/// If the reference does not denote a hub, or a tool does not start.
pub fn call_hub(orb: &Orb, reference: &str, tool: Tool, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    let object = orb.string_to_object(reference)?.with_timeout(Some(TIME_LIMIT));
    let hub = Hub::narrow(&object).context("the object is not a hub")?;
    let objects: [(&str, ObjectRef); 5] = [
        ("the_primitives", not_nil(hub.the_primitives()?)?.into()),
        ("the_strings", not_nil(hub.the_strings()?)?.into()),
        ("the_sequences", not_nil(hub.the_sequences()?)?.into()),
        ("the_structs", not_nil(hub.the_structs()?)?.into()),
        ("the_arrays", not_nil(hub.the_arrays()?)?.into()),
    ];
    let running = Running::start(tool, "interop.idl", folder)?;
    let cases = json_cases(SEED);
    let mut suite = Suite::new("", say);
    for (name, object) in objects {
        let group = name.trim_start_matches("the_");
        let cases: Vec<_> = cases.iter().filter(|case| case.object == name).collect();
        let calls: Vec<Call> = cases.iter().map(|case| (case.operation, case.arguments.as_str())).collect();
        let results = running.call_all(name, &object.to_string(), &calls)?;
        for (case, result) in cases.into_iter().zip(results) {
            suite.case(&format!("{group}/{}", case.operation.trim_start_matches("rotate_")), || {
                let result = result?;
                ensure!(result == case.results, "expected {}, saw {result}", case.results);
                Ok(())
            });
        }
    }
    _ = hub.shutdown();
    Ok(suite.tally)
}

/// Calls of a device of the TANGO control system, each with its results: anys with types of TANGO, unions in both
/// directions, sequences of structs.
const DEVICE_CASES: [(&str, &str, &str, &str); 9] = [
    ("long", "command_inout", r#"["DevLong",{"_type":"long","_value":-5}]"#, r#"{"_type":"long","_value":-5}"#),
    (
        "double",
        "command_inout",
        r#"["DevDouble",{"_type":"double","_value":1.5}]"#,
        r#"{"_type":"double","_value":1.5}"#,
    ),
    (
        "string",
        "command_inout",
        r#"["DevString",{"_type":"string","_value":"gr\u00fc\u00df"}]"#,
        r#"{"_type":"string","_value":"grüß"}"#,
    ),
    (
        "longs",
        "command_inout",
        r#"["DevVarLongArray",{"_type":"Tango::DevVarLongArray","_value":[1,-2]}]"#,
        r#""name":"DevVarLongArray","type":"sequence<long>"},"_value":[1,-2]}"#,
    ),
    (
        "longs-and-strings",
        "command_inout",
        r#"["DevVarLongStringArray",{"_type":"Tango::DevVarLongStringArray","_value":{"lvalue":[1],"svalue":["a","b"]}}]"#,
        r#""_value":{"lvalue":[1],"svalue":["a","b"]}}"#,
    ),
    (
        "union",
        "command_inout_4",
        r#"["DevShort",{"_type":"short","_value":7},"DEV",{"_d":"JAVA","java_clnt":{"MainClass":"Main","uuid":[1,2]}}]"#,
        r#"{"_type":"short","_value":7}"#,
    ),
    (
        "write",
        "write_attributes_4",
        r#"[[{"value":{"double_att_value":[2.5]},"quality":"ATTR_VALID","data_format":"SCALAR",
              "time":{"tv_sec":0,"tv_usec":0,"tv_nsec":0},"name":"double_scalar",
              "r_dim":{"dim_x":1,"dim_y":0},"w_dim":{"dim_x":1,"dim_y":0},"err_list":[]}],{"cpp_clnt":7}]"#,
        r#"{"out":{}}"#,
    ),
    (
        "read",
        "read_attributes_4",
        r#"[["double_scalar","nothing"],"DEV",{"cpp_clnt":7}]"#,
        r#""value":{"_d":"ATT_NO_DATA","union_no_data":true}"#,
    ),
    ("failure", "command_inout", r#"["Nothing",null]"#, r#""reason":"API_CommandNotFound""#),
];

/// Calls a device of TANGO by its corbaloc URL. Their reference gets the type that a TANGO database has for it.
///
/// # Errors
/// If a tool does not start.
pub fn call_device(orb: &Orb, url: &str, tool: Tool, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    let mut ior = orb.string_to_object(url)?.ior().clone();
    ior.type_id = "IDL:Tango/Device_4:1.0".to_owned();
    let running = Running::start(tool, "device.idl", folder)?;
    let calls = DEVICE_CASES.map(|(_, operation, arguments, _)| (operation, arguments));
    let results = running.call_all("device", &orb.reference(ior).to_string(), &calls)?;
    let mut suite = Suite::new("", say);
    for ((name, _, _, part), result) in DEVICE_CASES.into_iter().zip(results) {
        suite.case(&format!("device/{name}"), || {
            let text = result.unwrap_or_else(|problem| problem.to_string());
            ensure!(text.contains(part), "expected {part}, saw {text}");
            Ok(())
        });
    }
    Ok(suite.tally)
}

/// An operation and its arguments.
type Call<'c> = (&'c str, &'c str);

/// A tool, with the servers that it needs.
enum Running {
    Call { idl: PathBuf },
    Proxy { services: Services, _proxy: Server, host: String },
    Console { _services: Services, host: String, token: String },
}

/// `spandrel-up`, whose repository has the suite's IDL.
struct Services {
    _server: Server,
    naming: String,
    repository: String,
    console: String,
}

impl Running {
    fn start(tool: Tool, idl: &str, folder: &Path) -> Result<Self> {
        let idl = Path::new(env!("CARGO_MANIFEST_DIR")).join("idl").join(idl);
        if tool == Tool::Call {
            return Ok(Self::Call { idl });
        }
        let services = Services::start(&idl, folder)?;
        if tool == Tool::Console {
            let url = services.console.strip_prefix("http://").context("no URL of the console")?;
            let (host, token) = url.split_once("/#token=").context("no token of the console")?;
            let (host, token) = (host.to_owned(), token.to_owned());
            return Ok(Self::Console { _services: services, host, token });
        }
        let tokens = folder.join("tokens.txt");
        fs::write(&tokens, format!("interop {TOKEN}\n"))?;
        #[cfg(unix)]
        fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let mut command = executable("spandrel-proxy")?;
        command.args(["--expose", "Types/*", "--listen", "127.0.0.1:0", "--tokens"]).arg(tokens);
        let mut proxy = Server::start(command.args(services.orb_options()))?;
        let url = proxy.url("proxy")?;
        let host = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Self::Proxy { services, _proxy: proxy, host })
    }

    /// Calls the operations of an object; the result of each as JSON.
    fn call_all(&self, name: &str, reference: &str, calls: &[Call<'_>]) -> Result<Vec<Result<String>>> {
        match self {
            Self::Call { idl } => {
                let line =
                    |(operation, arguments): &Call<'_>| format!("{operation} {}\n", arguments.replace('\n', " "));
                let lines: String = calls.iter().map(line).collect();
                let mut call = executable("spandrel")?;
                call.args(["call", "--json", "--calls", "-", "--idl"]).arg(idl).arg(reference);
                let results: Vec<_> = output(&mut call, &lines)?.lines().map(|line| Ok(line.to_owned())).collect();
                ensure!(results.len() == calls.len(), "{} results of {} calls", results.len(), calls.len());
                Ok(results)
            }
            Self::Proxy { services, host, .. } => {
                let mut bind = executable("spandrel")?;
                bind.args(["bind", "--parents", &format!("Types/{name}"), reference]).args(services.orb_options());
                output(&mut bind, "")?;
                let call = |(operation, arguments): &Call<'_>| {
                    let path = format!("/Types/{name}/{operation}");
                    let (status, body) = post(host, &path, TOKEN, arguments)?;
                    ensure!(status == 200, "{status}: {body}");
                    Ok(body)
                };
                Ok(calls.iter().map(call).collect())
            }
            Self::Console { host, token, .. } => {
                let call = |(operation, arguments): &Call<'_>| {
                    let body = serde_json::json!({
                        "reference": reference, "operation": operation, "arguments": arguments,
                    });
                    let (status, body) = post(host, "/api/call", token, &body.to_string())?;
                    let answer: serde_json::Value = serde_json::from_str(&body)?;
                    answer["outcome"].as_str().map(str::to_owned).with_context(|| format!("{status}: {body}"))
                };
                Ok(calls.iter().map(call).collect())
            }
        }
    }
}

impl Services {
    fn start(idl: &Path, folder: &Path) -> Result<Self> {
        let mut up = executable("spandrel-up")?;
        up.arg("--data").arg(folder.join("data"));
        let mut server = Server::start(up.args(["--listen", "iiop://127.0.0.1:0", "--console", "127.0.0.1:0"]))?;
        let [naming, repository, console] =
            ["NameService", "InterfaceRepository", "Console"].map(|name| server.url(name));
        let services = Self { naming: naming?, repository: repository?, console: console?, _server: server };
        let mut fill: Command = executable("spandrel")?;
        fill.args(["idl", &format!("--to-repository={}", services.repository)]).arg(idl);
        output(&mut fill, "")?;
        Ok(services)
    }

    fn orb_options(&self) -> [String; 4] {
        let option = |name: &str, url: &str| format!("-ORBInitRef {name}={url}");
        let repository = option("InterfaceRepository", &self.repository);
        ["--orb".to_owned(), option("NameService", &self.naming), "--orb".to_owned(), repository]
    }
}
