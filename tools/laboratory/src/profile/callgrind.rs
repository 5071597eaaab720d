//! Profiles of `valgrind --tool=callgrind`: costs by function, and the calls between functions.

use std::collections::BTreeMap;

/// The greatest size of a profile that is read.
pub(crate) const MAX_OCTETS: u64 = 256 << 20;

/// A function, by the file with its code and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// The path of the program or library.
    pub object: String,
    /// The function's name, as valgrind demangles it.
    pub name: String,
}

/// The work of a process: instructions in user mode, and processor time in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Instructions in user mode.
    pub instructions: f64,
    /// Processor time of system calls in nanoseconds.
    pub kernel_nanos: f64,
}

impl Cost {
    pub(crate) fn add(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.kernel_nanos += other.kernel_nanos;
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self { instructions: self.instructions * factor, kernel_nanos: self.kernel_nanos * factor }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            instructions: (self.instructions - other.instructions).max(0.0),
            kernel_nanos: (self.kernel_nanos - other.kernel_nanos).max(0.0),
        }
    }
}

/// The costs of one process by function, as callgrind has counted them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The cost of each function without that of the functions which it calls.
    pub own: BTreeMap<Function, Cost>,
    /// For each function, the instructions below it by caller.
    pub callers: BTreeMap<Function, BTreeMap<Function, f64>>,
}

impl Profile {
    /// Reads the output of callgrind.
    ///
    /// # Errors
    /// The line that is not in the format of callgrind, as text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader::default();
        for (index, line) in text.lines().enumerate() {
            reader.line(line).map_err(|reason| format!("line {} of the profile: {reason}", index + 1))?;
        }
        if reader.events.is_empty() {
            return Err("the profile names no events".to_owned());
        }
        Ok(reader.profile)
    }

    /// The difference to a profile of a shorter run: without start and end of the program.
    #[must_use]
    pub fn minus(&self, shorter: &Self) -> Self {
        let own = self.own.iter().map(|(function, cost)| {
            (function.clone(), cost.minus(shorter.own.get(function).copied().unwrap_or_default()))
        });
        let callers = self.callers.iter().map(|(function, callers)| {
            let before = shorter.callers.get(function);
            let beyond = callers.iter().map(|(caller, instructions)| {
                let before = before.and_then(|before| before.get(caller)).copied().unwrap_or(0.0);
                (caller.clone(), (instructions - before).max(0.0))
            });
            (function.clone(), beyond.collect())
        });
        Self { own: own.collect(), callers: callers.collect() }
    }

    /// The sum of the costs of all functions.
    #[must_use]
    pub fn total(&self) -> Cost {
        let mut total = Cost::default();
        self.own.values().for_each(|cost| total.add(*cost));
        total
    }
}

/// The state between two lines.
#[derive(Default)]
struct Reader {
    /// The names of the events, in the order of their columns.
    events: Vec<String>,
    /// The number of columns before those of the events.
    positions: usize,
    objects: BTreeMap<String, String>,
    functions: BTreeMap<String, String>,
    object: String,
    function: String,
    called_object: Option<String>,
    called_function: String,
    /// Whether the next line of costs is that of a call.
    is_call: bool,
    profile: Profile,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '*')) {
            return self.costs(line);
        }
        if let Some((key, value)) =
            line.split_once('=').filter(|(key, _)| key.bytes().all(|byte| byte.is_ascii_alphabetic()))
        {
            match key {
                "ob" => self.object = named(&mut self.objects, value)?,
                "cob" => self.called_object = Some(named(&mut self.objects, value)?),
                "fn" => self.function = named(&mut self.functions, value)?,
                "cfn" => self.called_function = named(&mut self.functions, value)?,
                "calls" => self.is_call = true,
                _ => {} // files of the source
            }
            return Ok(());
        }
        match line.split_once(':') {
            Some(("events", names)) => self.events = names.split_whitespace().map(str::to_owned).collect(),
            Some(("positions", names)) => self.positions = names.split_whitespace().count(),
            Some(_) => {} // what describes the run
            None => return Err(format!("`{}` is no line of callgrind", line.chars().take(80).collect::<String>())),
        }
        Ok(())
    }

    /// A line of positions and costs; costs at its end that are zero are left out.
    fn costs(&mut self, line: &str) -> Result<(), String> {
        let mut cost = Cost::default();
        for (index, word) in line.split_whitespace().skip(self.positions.max(1)).enumerate() {
            let value: u64 = word.parse().map_err(|_| format!("`{word}` is no cost"))?;
            match self.events.get(index).map(String::as_str) {
                Some("Ir") => cost.instructions = value as f64,
                Some("sysCpuTime") => cost.kernel_nanos = value as f64,
                Some(_) => {}
                None => return Err("it has more costs than events".to_owned()),
            }
        }
        let caller = Function { object: self.object.clone(), name: self.function.clone() };
        if std::mem::take(&mut self.is_call) {
            let object = self.called_object.take().unwrap_or_else(|| self.object.clone());
            let called = Function { object, name: std::mem::take(&mut self.called_function) };
            *self.profile.callers.entry(called).or_default().entry(caller).or_default() += cost.instructions;
        } else {
            self.profile.own.entry(caller).or_default().add(cost);
        }
        Ok(())
    }
}

/// The name of `(3) name`, or of `(3)` alone, which stands for the same name again.
fn named(names: &mut BTreeMap<String, String>, value: &str) -> Result<String, String> {
    let Some((number, name)) = value.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
        return Ok(value.to_owned());
    };
    match name.trim() {
        "" => names.get(number).cloned().ok_or_else(|| format!("the name ({number}) is not defined")),
        name => {
            names.insert(number.to_owned(), name.to_owned());
            Ok(name.to_owned())
        }
    }
}
