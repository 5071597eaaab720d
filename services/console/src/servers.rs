//! Servers of the activator and their output.

use std::io;
use std::path::Path;

use axum::http::StatusCode;
use serde_json::{Value, json};
use spandrel::ObjectRef;
use spandrel::services::implementation_repository::administration::{
    ActivateServerError, FindError, ShutdownServerError,
};
use spandrel::services::implementation_repository::{Administration, ServerInformation, ServerState};
use spandrel_activator::CurrentCommands;
use spandrel_proxy::problem::Problem;

use crate::access::{CALL_TIMEOUT, Permissions, failed, invalid};

/// The most octets of a server's output that are shown.
const MAX_OUTPUT: u64 = 64 << 10;
/// The interface of the activator's administration, for rules about reading output and metrics.
const ADMINISTRATION: &str = "IDL:spandrel/ImplementationRepository/Administration:1.0";

fn administration(activator: &ObjectRef) -> Administration {
    activator.with_timeout(Some(CALL_TIMEOUT)).unchecked_narrow()
}

/// All servers and their states.
pub(crate) fn list(activator: &ObjectRef, commands: &CurrentCommands) -> Result<Value, Problem> {
    let servers = administration(activator).list().map_err(|exception| failed(&exception))?;
    let described = servers.iter().map(|server| described(server, commands));
    Ok(json!({ "servers": described.collect::<Vec<_>>() }))
}

fn described(server: &ServerInformation, commands: &CurrentCommands) -> Value {
    json!({
        "name": server.server,
        "state": format!("{:?}", server.state).to_uppercase(),
        "enabled": server.enabled,
        "pid": server.pid,
        "starts": server.starts,
        "failures": server.failures,
        "waiting": server.waiting,
        "last_failure": server.last_failure,
        "command": server.startup.command,
        "metrics": commands.metrics_address(&server.startup.command).is_some(),
        "activation": format!("{:?}", server.startup.activation),
        "description": server.startup.description,
    })
}

/// Begins to start or to end a server.
pub(crate) fn change(activator: &ObjectRef, server: &str, action: &str) -> Result<Value, Problem> {
    let administration = administration(activator);
    match action {
        "start" => administration.activate_server(server).map_err(|error| match error {
            ActivateServerError::NotFound(_) => not_found(server),
            ActivateServerError::CannotComplete(error) => cannot(server, &error.reason),
            ActivateServerError::System(exception) => failed(&exception),
        })?,
        "stop" | "drain" => administration.shutdown_server(server, action == "drain").map_err(|error| match error {
            ShutdownServerError::NotFound(_) => not_found(server),
            ShutdownServerError::CannotComplete(error) => cannot(server, &error.reason),
            ShutdownServerError::System(exception) => failed(&exception),
        })?,
        _ => return Err(invalid(format!("unknown action `{action}`: expected start, stop or drain"))),
    }
    Ok(json!({}))
}

fn not_found(server: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such server").detail(format!("`{server}` is not registered"))
}

fn cannot(server: &str, reason: &str) -> Problem {
    Problem::new(StatusCode::CONFLICT, format!("the state of `{server}` cannot be changed")).detail(reason)
}

/// The metrics of a server, as its endpoint shows them.
pub(crate) fn metrics(
    permissions: &Permissions,
    activator: &ObjectRef,
    commands: &CurrentCommands,
    server: &str,
) -> Result<String, Problem> {
    permissions.check("read_metrics", ADMINISTRATION, Some(server))?;
    let server_record = administration(activator).find(server).map_err(|error| match error {
        FindError::NotFound(_) => not_found(server),
        FindError::System(exception) => failed(&exception),
    })?;
    let title = "the server shows no metrics";
    let Some(address) = commands.metrics_address(&server_record.startup.command) else {
        let detail = format!("the command `{}` has no setting `metrics`", server_record.startup.command);
        return Err(Problem::new(StatusCode::CONFLICT, title).detail(detail));
    };
    if server_record.state != ServerState::Running {
        return Err(Problem::new(StatusCode::CONFLICT, title).detail(format!("`{server}` does not run")));
    }
    spandrel_metrics::read(address).map_err(|error| {
        Problem::new(StatusCode::BAD_GATEWAY, title).detail(format!("cannot read http://{address}/metrics: {error}"))
    })
}

/// The end of a server's output.
pub(crate) fn output(permissions: &Permissions, data: &Path, server: &str) -> Result<Value, Problem> {
    permissions.check("read_output", ADMINISTRATION, Some(server))?;
    match spandrel_activator::output_of(data, server, MAX_OUTPUT) {
        Ok(octets) => {
            let is_cut = octets.len() as u64 == MAX_OUTPUT;
            let text = String::from_utf8_lossy(&octets);
            // The first line is a part of one.
            let whole = if is_cut { text.split_once('\n').map_or(&*text, |(_, rest)| rest) } else { &text };
            Ok(json!({ "text": whole, "truncated": is_cut }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(json!({ "text": "", "truncated": false })),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(invalid(error.to_string())),
        Err(error) => Err(Problem::internal(format!("cannot read the output of `{server}`: {error}"))),
    }
}
