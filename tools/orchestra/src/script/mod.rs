//! `spandrel orchestra script`: scripts in the language Rhai, with the objects of the naming service as handles (A.2).
//!
//! | function | meaning |
//! | --- | --- |
//! | `get_handle(NAME)` | the object with this name in the naming service, or with this URL |
//! | `handle.operation(…)` | an operation, with the values of its `in` and `inout` parameters |
//! | `handle.attribute` | an attribute; assignable unless it is `readonly` |
//! | `invoke(handle, "operation", […])` | an operation whose name is a keyword of the language |
//! | `mean([…])`, `deviation([…])` | the mean and the standard deviation |
//! | `sleep(SECONDS)` | a pause of up to a day |
//! | `ARGS` | the arguments behind the script, as strings |
//!
//! An operation without `inout` and `out` parameters returns its result. Others return a map of these by name, with
//! the result as `result` (`_result` if a parameter has that name). Structures are maps, sequences are arrays, enumerators are strings. An exception is an error
//! that `try` catches.

mod handle;
mod time_limit;
mod value;

use std::any::TypeId;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rhai::module_resolvers::DummyModuleResolver;
use rhai::{Array, Dynamic, Engine, EvalAltResult, NativeCallContext, Scope};
use spandrel::dynamic::{Descriptions, describe, describe_file};
use spandrel::options::OrbArgs;
use spandrel_daemon::Failure;
use spandrel_measure::stats::Moments;

use crate::names::{DEFAULT_NAMING, Names};
use handle::{Finder, Handle};
use time_limit::TimeLimit;

/// The most arguments of an operation that is called like a method.
const MAX_ARGUMENTS: usize = 12;
/// The longest pause, in seconds: a day.
const MAX_PAUSE: f64 = 86_400.0;

/// Run a script in the language Rhai, which calls objects of the naming service.
///
/// `get_handle("/orchestrator/servers/HOST/Harness")` is a handle, and `handle.start("NAME ARCHITECTURE")` a call.
/// The interfaces of the Orchestrator are known; those of others are of -I files, or of an interface repository.
#[derive(Clone, Debug, clap::Args)]
pub struct ScriptArgs {
    /// The script to run (Rhai)
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
    /// Its arguments, which it has as ARGS
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// A file of IDL with further interfaces; may be given more than once
    #[arg(short = 'I', long = "idl", value_name = "FILE")]
    idl: Vec<PathBuf>,
    /// The naming service in which agents are bound
    #[arg(long, value_name = "URL", default_value = DEFAULT_NAMING)]
    naming: String,
    /// The most steps of the script
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000_000)]
    max_operations: u64,
    /// The time limit of the whole script [default: none]
    #[arg(long, value_name = "TIME", value_parser = time)]
    max_time: Option<Duration>,
    /// The time limit of a call
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = time)]
    timeout: Duration,
    #[command(flatten)]
    orb: OrbArgs,
}

impl ScriptArgs {
    /// Runs the script to its end.
    ///
    /// # Errors
    /// A script that cannot be read, lacks an argument or has an error; IDL that cannot be read.
    pub fn run(&self) -> Result<(), Failure> {
        let text = std::fs::read_to_string(&self.script)
            .with_context(|| format!("cannot read the script {}", self.script.display()))
            .map_err(Failure::usage)?;
        let mut idl = Vec::new();
        for file in &self.idl {
            let described = describe_file(file, file.parent().map(PathBuf::from));
            idl.push(
                described.map_err(|error| {
                    Failure::usage(anyhow!("cannot use {} (-I): {}", file.display(), error.in_line()))
                })?,
            );
        }
        let orb = spandrel_daemon::client_orb(&self.orb, self.timeout)?;
        let names = Names::at(&orb, &self.naming).map_err(Failure::usage)?;
        idl.push(own_idl());
        let limit = TimeLimit::new(self.max_time, self.timeout);
        let finder = Finder::new(orb.clone(), names, idl, limit);
        let outcome = run(&text, &self.arguments, finder, self.max_operations, limit);
        _ = orb.shutdown();
        let script = self.script.display();
        // A limit that ends the script is no error that `try` catches.
        let outcome = outcome.map_err(|error| match *error {
            EvalAltResult::ErrorTerminated(reason, position) if reason.is_string() => {
                EvalAltResult::ErrorRuntime(reason, position).into()
            }
            other => Box::new(other),
        });
        outcome.map_err(|error| match missing_argument(&error, &text) {
            Some(index) => Failure::usage(anyhow!(
                "{script} needs argument {} (ARGS[{index}], {}), and {} are given: spandrel orchestra script \
                 {script} ARGUMENT…",
                index + 1,
                error.position(),
                self.arguments.len(),
            )),
            None => Failure::failed(anyhow!("{script}: {error}")),
        })
    }
}

/// Parses the time limit of a call.
fn time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "expected a time with its unit, such as 90s or 15m".to_owned())
}

/// The index of the argument that the script has used and that was not given, if that is the error.
fn missing_argument(error: &EvalAltResult, text: &str) -> Option<i64> {
    let EvalAltResult::ErrorArrayBounds(_, index, position) = error else { return None };
    let line = text.lines().nth(position.line()?.checked_sub(1)?)?;
    let before: String = line.chars().take(position.position()?.checked_sub(1)?).collect();
    before.trim_end().strip_suffix('[')?.trim_end().ends_with("ARGS").then_some(*index)
}

fn own_idl() -> Descriptions {
    describe(crate::idl::TEXT).expect("the build has compiled this text")
}

/// Runs a script with these arguments.
fn run(
    text: &str,
    arguments: &[String],
    finder: Finder,
    max_operations: u64,
    limit: TimeLimit,
) -> Result<(), Box<EvalAltResult>> {
    let mut engine = Engine::new();
    engine.set_max_operations(max_operations);
    if limit.is_set() {
        engine.on_progress(move |_| limit.left().err().map(|error| error.to_string().into()));
    }
    engine.set_max_call_levels(64);
    engine.set_max_expr_depths(128, 64);
    engine.set_max_string_size(1 << 20);
    engine.set_max_array_size(1 << 20);
    engine.set_max_map_size(1 << 16);
    engine.set_module_resolver(DummyModuleResolver::new()); // a script is one file
    engine.disable_symbol("eval");
    engine.on_print(|text| _ = spandrel_daemon::print(&format!("{text}\n")));
    let finder = Arc::new(finder);
    engine.register_type_with_name::<Handle>("Handle");
    engine.register_fn("get_handle", move |name: &str| finder.handle(name).map_err(failed));
    engine.register_fn("to_string", |handle: &mut Handle| handle.to_string());
    engine.register_fn("invoke", |handle: Handle, operation: &str, arguments: Array| {
        handle.call(operation, &arguments).map_err(failed)
    });
    engine.register_indexer_get(|handle: &mut Handle, name: &str| handle.get(name).map_err(failed));
    engine.register_indexer_set(|handle: &mut Handle, name: &str, value: Dynamic| {
        handle.set(name, &value).map_err(failed)
    });
    // Instead of those of the language, which panic for long times.
    engine.register_fn("sleep", move |seconds: f64| pause(seconds, limit));
    engine.register_fn("sleep", move |seconds: i64| pause(seconds as f64, limit));
    engine.register_fn("mean", |values: Array| moments(&values).map(|moments| moments.mean));
    engine.register_fn("deviation", |values: Array| moments(&values).map(|moments| moments.deviation));
    register_operations(&mut engine, text);
    let mut scope = Scope::new();
    let arguments: Array = arguments.iter().map(|argument| argument.clone().into()).collect();
    scope.push_constant("ARGS", arguments);
    engine.run_with_scope(&mut scope, text)
}

/// Makes every name that the script calls like a method an operation of handles. The interface of a handle decides
/// whether it has the operation when that is called.
fn register_operations(engine: &mut Engine, text: &str) {
    for name in method_names(text) {
        // `handle.to_string()` is the reference.
        for count in usize::from(name == "to_string")..=MAX_ARGUMENTS {
            let mut types = vec![TypeId::of::<Handle>()];
            types.resize(count + 1, TypeId::of::<Dynamic>());
            let operation = name.clone();
            engine.register_raw_fn(&name, types, move |_: NativeCallContext<'_>, arguments: &mut [&mut Dynamic]| {
                let handle = arguments[0].clone().cast::<Handle>();
                let values: Array = arguments[1..].iter().map(|argument| (**argument).clone()).collect();
                handle.call(&operation, &values).map_err(failed)
            });
        }
    }
}

/// The names between a dot and an opening parenthesis.
fn method_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in text.split('.').skip(1) {
        let rest = rest.trim_start();
        let length = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
        if is_name && after.trim_start().starts_with('(') {
            names.insert(name.to_owned());
        }
    }
    names
}

fn moments(values: &Array) -> Result<Moments, Box<EvalAltResult>> {
    let numbers: Option<Vec<f64>> = values
        .iter()
        .map(|value| value.as_float().or_else(|_| value.as_int().map(|value| value as f64)).ok())
        .collect();
    numbers.and_then(Moments::from_values).ok_or_else(|| "expected an array of numbers, with one at least".into())
}

/// Sleeps for at most [`MAX_PAUSE`] seconds, within the time of the script.
fn pause(seconds: f64, limit: TimeLimit) -> Result<(), Box<EvalAltResult>> {
    if !(0.0..=MAX_PAUSE).contains(&seconds) {
        return Err(failed(anyhow!("a pause of {seconds:?} s is not from 0 s to a day")));
    }
    let (pause, left) = (Duration::from_secs_f64(seconds), limit.left().map_err(failed)?);
    thread::sleep(left.map_or(pause, |left| pause.min(left)));
    limit.left().map(drop).map_err(failed)
}

/// An error of the script's language.
fn failed(error: anyhow::Error) -> Box<EvalAltResult> {
    format!("{error:#}").into()
}
