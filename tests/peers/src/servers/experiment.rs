//! `cargo xtask orchestra`: the experiment of paper 004 (5.5 to 5.7) with all programs of the table, on this machine.
//!
//! It starts a naming service and an agent of the Orchestrator, whose configuration has the programs, and carries
//! out a plan with all of their architectures. Ours are compared with each other program of the same platform that has
//! the same architecture.

mod size;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use toml::{Table, Value};
use xtask::workspace;

use crate::builds::Profile;
pub(crate) use size::Options;
use size::Size;

use super::program::{Environment, Program, windows_folder};
use super::{selected, versions};
use crate::bounded::Bounded;
use crate::windows::wine;

/// The name of the only host.
const HOST: &str = "here";
/// The time for the start of a service.
const START: Duration = Duration::from_secs(20);
/// The time for a whole run: that of the paper's size takes hours.
const RUN: Duration = Duration::from_secs(48 * 3600);
/// The program of util-linux that binds another one to processors.
const TASKSET: &str = "/usr/bin/taskset";
/// The processors of servers and load that are pinned.
const SERVER_PROCESSOR: &str = "1";
const LOAD_PROCESSOR: &str = "0";
/// The workers of pools in the paper.
const POOLS: [i64; 2] = [5, 10];

/// Architectures whose number of workers is that of the plan.
const POOLED: [&str; 7] = [
    "accept-pool",
    "accept-pool-mutex",
    "completion-ports",
    "event-driven-pool",
    "leader-followers",
    "pre-forked",
    "queue-pool",
];

/// Architectures of others that correspond to one of ours with another name.
const COUNTERPARTS: [(&str, &[&str]); 2] = [
    ("reactive", &["epoll", "poll", "select", "event-select", "event-driven"]),
    ("asynchronous", &["io-uring", "completion-ports"]),
];

/// The notes of a report with programs for Windows.
const NOTES_ON_WINDOWS: [&str; 3] = [
    "The paper's rows of Cygwin, Uwin and Interix have no living implementation here. In their place stands \
     spandrel-windows: the same portable source as spandrel, compiled for Windows and run under Wine, as win32 is. The \
     time of Wine's server process is in that of the server.",
    "Windows has no fork: the architectures process-per-connection and pre-forked are absent there.",
    "ACE, Java and Tcl on Windows are absent.",
];

/// The note of a report on pinned servers.
const NOTE_ON_PROCESSORS: &str = "All threads of a server ran on one processor, and the load on another.";

/// Carries the experiment out with the selected programs, or goes on with it where it was interrupted, and writes the
/// report into the target folder.
pub(crate) fn run(options: &Options) -> Result<()> {
    let size = options.size()?;
    let programs = selected(options.only.as_deref())?;
    let folder = std::path::absolute(workspace::target().join("orchestra"))?;
    let servers = std::path::absolute(workspace::target().join("peers/servers"))?;
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(&servers)?;
    size.profile.build(&[("spandrel-naming", "spandrel-naming"), ("spandrel-orchestra", "spandrel-orchestra")])?;
    let bin = workspace::target().join(size.profile.folder());

    let mut commands = Table::new();
    {
        // Dropped before a server starts: a running instance of Wine would take work out of their control groups.
        let environment = Environment::new(servers, size.profile);
        for program in &programs {
            program.require().and_then(|()| program.build(&environment)).with_context(|| program.name)?;
            commands.insert(program.name.to_owned(), Value::Table(command(program, &environment, size)?));
        }
    }
    for program in programs.iter().filter(|program| program.is_for_windows()) {
        for (architecture, workers) in configurations(program) {
            wine::copy(&windows_folder()?, &instance(program, architecture, &workers.to_string())?)?;
        }
    }
    let agent_file = folder.join("agent.toml");
    let mut agent = Table::new();
    agent.insert("host".to_owned(), HOST.into());
    agent.insert("commands".to_owned(), Value::Table(commands));
    fs::write(&agent_file, agent.to_string())?;
    let mut name = format!("paper-{}-{}", size.samples, size.requests);
    if size.slices > 1 {
        name += &format!("-{}", size.slices);
    }
    if size.is_pinned {
        name += "-pinned";
    }
    let plan_file = folder.join(format!("{name}.toml"));
    let mut plan = plan(&programs, size);
    plan.insert("versions".to_owned(), Value::Table(tool_versions()));
    fs::write(&plan_file, plan.to_string())?;
    let results = folder.join(format!("{name}.jsonl"));
    if size.profile == Profile::Dev && results.exists() {
        fs::remove_file(&results)?; // a check measures the present programs
    }

    let names = folder.join("names");
    if names.exists() {
        fs::remove_dir_all(&names)?;
    }
    let mut naming = Command::new(bin.join("spandrel-naming"));
    naming.arg("--data").arg(&names).args(["--listen", "iiop://127.0.0.1:0"]);
    let (mut naming, url) = service("the naming service", &mut naming, "ready: NameService ")?;
    let mut agent = match size.is_pinned {
        true => Command::new(TASKSET),
        false => Command::new(bin.join("spandrel-orchestra")),
    };
    if size.is_pinned {
        agent.args(["--cpu-list", LOAD_PROCESSOR]).arg(bin.join("spandrel-orchestra"));
    }
    agent.args(["agent", "--insecure", "--naming", &url, "--commands"]).arg(&agent_file);
    let (mut agent, _) = service("the agent", &mut agent, "ready: /orchestrator/clients/")?;

    let run = |words: &[&str], files: &[&Path]| -> Result<()> {
        let mut command = Command::new(bin.join("spandrel-orchestra"));
        command.args(words).args(files);
        let mut child = Bounded::start(&format!("spandrel-orchestra {}", words[0]), &mut command)?;
        let deadline = Instant::now() + RUN;
        let mut is_table = true; // not the list of pictures after the tables
        while let Some(line) = child.line(deadline)? {
            is_table &= line != "## Figures";
            if is_table {
                println!("{line}");
            }
        }
        let status = child.finish(START)?;
        if !status.success() {
            bail!("spandrel-orchestra {} ended with {status}: {}", words[0], child.stderr());
        }
        Ok(())
    };
    run(&["run", "--naming", &url, "--results"], &[&results, &plan_file])?;
    run(&["report", "--output"], &[&folder.join(format!("{name}-report")), &results])?;
    agent.close_stdin();
    for (name, process) in [("the agent", &mut agent), ("the naming service", &mut naming)] {
        workspace::run(Command::new("kill").arg("-TERM").arg(process.id().to_string()))?;
        let status = process.finish(START).with_context(|| format!("{name} does not end"))?;
        if !status.success() {
            bail!("{name} ended with {status}: {}", process.stderr());
        }
    }
    check(&results, &programs, size)
}

/// Starts a service; returns it, and the rest of the line with which it is ready.
fn service(name: &str, command: &mut Command, ready: &str) -> Result<(Bounded, String)> {
    let process = Bounded::start(name, command)?;
    let deadline = Instant::now() + START;
    while let Some(line) = process.line(deadline)? {
        if let Some(rest) = line.strip_prefix(ready) {
            let rest = rest.to_owned();
            return Ok((process, rest));
        }
    }
    bail!("{name} ended before it was ready: {}", process.stderr())
}

/// A program in the configuration of the agent.
fn command(program: &Program, environment: &Environment, size: Size) -> Result<Table> {
    let started = program.command(environment)?;
    let text = |word: &std::ffi::OsStr| word.to_str().map(Value::from).context("a path is not UTF-8");
    let mut table = Table::new();
    let mut arguments = started.get_args().map(text).collect::<Result<Vec<_>>>()?;
    let file = text(started.get_program())?;
    if size.is_pinned {
        table.insert("program".to_owned(), TASKSET.into());
        arguments.splice(..0, ["--cpu-list".into(), SERVER_PROCESSOR.into(), file]);
    } else {
        table.insert("program".to_owned(), file);
    }
    arguments.push("{architecture}".into());
    arguments.extend(program.options().map(Value::from));
    if program.is_for_windows() {
        arguments.push("--until-stdin-closes".into());
        table.insert("end".to_owned(), "close-stdin".into());
        table.insert("start_timeout".to_owned(), "60s".into());
    }
    table.insert("arguments".to_owned(), arguments.into());
    let architectures = program.architectures.iter().copied().map(Value::from).collect::<Vec<_>>();
    table.insert("architectures".to_owned(), architectures.into());
    let mut variables = Table::new();
    for (name, value) in started.get_envs() {
        if let (Some(name), Some(value)) = (name.to_str(), value) {
            variables.insert(name.to_owned(), text(value)?);
        }
    }
    if program.is_for_windows() {
        let instance = instance(program, "{architecture}", "{workers}")?;
        variables.insert("WINEPREFIX".to_owned(), text(instance.as_os_str())?);
    }
    table.insert("environment".to_owned(), Value::Table(variables));
    Ok(table)
}

/// The folder of the instance of Wine for one server: those that run at one time would share Wine's server process,
/// whose work would be counted as that of the first.
fn instance(program: &Program, architecture: &str, workers: &str) -> Result<PathBuf> {
    Ok(windows_folder()?.join(format!("servers/{}-{architecture}-{workers}", program.name)))
}

/// The architectures of a program, each with the workers of all pools; with 0 if it has no pool.
fn configurations(program: &Program) -> impl Iterator<Item = (&'static str, i64)> {
    program.architectures.iter().flat_map(|architecture| {
        let pools = if POOLED.contains(architecture) { &POOLS[..] } else { &[0] };
        pools.iter().map(|workers| (*architecture, *workers))
    })
}

/// The versions of all tools (table B.1).
fn tool_versions() -> Table {
    let all = versions::all().into_iter();
    all.map(|versions::Version { tool, version }| (tool.to_owned(), Value::from(version))).collect()
}

/// The name of one of our architectures to which one of a program corresponds.
fn counterpart(architecture: &'static str) -> &'static str {
    let known = COUNTERPARTS.iter().find(|(_, others)| others.contains(&architecture));
    known.map_or(architecture, |(ours, _)| ours)
}

/// Our program for the platform of another one that has one of its architectures; with its back end if there is one.
fn own<'p>(programs: &[&'p Program], other: &Program, architecture: &'static str) -> Option<&'p Program> {
    let is_same_platform = |own: &&&Program| own.is_ours() && own.is_for_windows() == other.is_for_windows();
    let candidates = || programs.iter().filter(is_same_platform).copied();
    let with_backend = candidates().find(|own| own.backend == Some(architecture));
    with_backend
        .or_else(|| candidates().find(|own| own.backend.is_none()))
        .filter(|own| own.architectures.contains(&counterpart(architecture)))
}

/// The plan: all architectures of all programs.
fn plan(programs: &[&Program], size: Size) -> Table {
    let (mut servers, mut pairs) = (Vec::new(), Vec::new());
    for program in programs {
        for architecture in program.architectures {
            let is_pooled = POOLED.contains(architecture);
            let mut server = Table::new();
            server.insert("host".to_owned(), HOST.into());
            server.insert("command".to_owned(), program.name.into());
            server.insert("architectures".to_owned(), vec![Value::from(*architecture)].into());
            server.insert("pooled".to_owned(), is_pooled.into());
            let first = counterpart(architecture);
            let platform = if program.is_for_windows() { ", Windows" } else { "" };
            server.insert("picture".to_owned(), format!("{first}{platform}").into());
            servers.push(Value::Table(server));
            let Some(ours) = own(programs, program, architecture).filter(|_| !program.is_ours()) else { continue };
            // Without a pool, there is one of each; a pool is compared with that of the same size.
            let pools =
                if is_pooled { POOLS.iter().map(|pool| format!("-{pool}")).collect() } else { vec![String::new()] };
            for pool in pools {
                let own_pool = if POOLED.contains(&first) { pool.as_str() } else { "" };
                let mut pair = Table::new();
                pair.insert("first".to_owned(), format!("{}/{first}{own_pool}", ours.name).into());
                pair.insert("second".to_owned(), format!("{}/{architecture}{pool}", program.name).into());
                pairs.push(Value::Table(pair));
            }
        }
    }
    let mut plan = Table::new();
    plan.insert("name".to_owned(), "the servers of paper 004, and others".into());
    plan.insert("clients".to_owned(), vec![Value::from(HOST)].into());
    plan.insert("samples".to_owned(), size.samples.into());
    plan.insert("requests".to_owned(), size.requests.into());
    plan.insert("slices".to_owned(), size.slices.into());
    plan.insert("pools".to_owned(), POOLS.map(Value::from).to_vec().into());
    let mut notes = Vec::new();
    if programs.iter().any(|program| program.is_for_windows()) {
        notes.extend(NOTES_ON_WINDOWS.map(Value::from));
    }
    if size.is_pinned {
        notes.push(NOTE_ON_PROCESSORS.into());
    }
    if !notes.is_empty() {
        plan.insert("notes".to_owned(), notes.into());
    }
    plan.insert("server".to_owned(), servers.into());
    if !pairs.is_empty() {
        plan.insert("pair".to_owned(), pairs.into());
    }
    plan
}

/// Checks the records: each server has all of its samples, and each request was answered.
fn check(results: &Path, programs: &[&Program], size: Size) -> Result<()> {
    let text = fs::read_to_string(results)?;
    let mut samples = 0;
    let mut faults = Vec::new();
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line)?;
        if record["record"] != "sample" {
            continue;
        }
        samples += 1;
        if record["answered"].as_i64() != Some(size.requests) {
            faults.push(line.chars().take(400).collect::<String>());
        }
    }
    let servers: usize = programs.iter().map(|program| configurations(program).count()).sum();
    let expected = servers as i64 * size.samples;
    if samples != expected || !faults.is_empty() {
        bail!("{samples} samples instead of {expected}, and requests without an answer in: {}", faults.join("\n"));
    }
    let report = results.with_extension("").display().to_string() + "-report/report.html";
    println!("{samples} samples, each of {} requests that were answered; {report}", size.requests);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::table::PROGRAMS;
    use super::*;

    #[test]
    fn the_plan_has_every_architecture_and_compares_ours() {
        let programs: Vec<&Program> = PROGRAMS.iter().collect();
        let plan = plan(&programs, Size::CHOSEN);
        let servers = plan["server"].as_array().unwrap();
        assert_eq!(servers.len(), programs.iter().map(|program| program.architectures.len()).sum::<usize>());
        let pairs: Vec<_> = plan["pair"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| [&pair["first"], &pair["second"]].map(|of| of.as_str().unwrap()))
            .collect();
        assert!(pairs.contains(&["spandrel/reactive", "posix/epoll"]));
        assert!(pairs.contains(&["spandrel-poll/reactive", "posix/poll"]));
        assert!(pairs.contains(&["spandrel-select/reactive", "ace/select"]));
        assert!(pairs.contains(&["spandrel-windows/reactive", "win32/select"]));
        assert!(pairs.contains(&["spandrel/queue-pool-10", "ace/queue-pool-10"]));
        assert!(pairs.contains(&["spandrel-windows/reactive", "win32/event-select"]));
        assert!(pairs.contains(&["spandrel-windows/accept-pool-10", "win32/accept-pool-10"]));
        for [first, second] in pairs {
            assert!(first.starts_with("spandrel") && !second.starts_with("spandrel"), "{first} : {second}");
            assert_eq!(first.contains("windows"), second.starts_with("win32"), "{first} : {second}");
        }
        assert_eq!(plan["notes"].as_array().unwrap().len(), NOTES_ON_WINDOWS.len());
        let pinned = super::plan(&[programs[0]], Size { is_pinned: true, ..Size::CHOSEN });
        assert_eq!(pinned["notes"].as_array().unwrap()[..], [NOTE_ON_PROCESSORS.into()]);
        let on_linux: Vec<&Program> = PROGRAMS.iter().filter(|program| !program.is_for_windows()).collect();
        assert!(!super::plan(&on_linux, Size::CHOSEN).contains_key("notes"));
    }
}
