//! `spandrel list`, `tree`, `bind` and `unbind`: the names of a naming service.

mod bind;
mod list;
mod tree;
mod unbind;

use anyhow::{Context as _, anyhow, bail};
use spandrel::net::error::escape;
use spandrel::net::sync::time::Deadline;
use spandrel::services::cos_naming::{
    Binding, BindingIterator, BindingType, NameComponent, NamingContextExt, naming_context, naming_context_ext,
};
use spandrel::services::name;
use spandrel::{ObjectRef, Orb};
use spandrel_giop::percent;

use crate::client_args::bound;
use crate::common;
use crate::orb_args;

pub(crate) use bind::Args as BindArgs;
pub(crate) use list::Args as ListArgs;
pub(crate) use tree::Args as TreeArgs;
pub(crate) use unbind::Args as UnbindArgs;

/// The bindings of one answer.
const CHUNK: u32 = 500;

/// A name: its root context, and the name below that in its string form, empty for the context itself.
pub(crate) struct Place {
    pub(crate) root: NamingContextExt,
    pub(crate) path: String,
}

impl Place {
    /// The place of `corbaname:…#NAME`, of the URL of a context, or of a name below the initial reference `NameService`.
    pub(crate) fn resolve(orb: &Orb, text: &str) -> anyhow::Result<Self> {
        let (root, path) = match text {
            _ if !is_url(text) => (service(orb)?, text.to_owned()),
            _ if scheme_is(text, "corbaname") => {
                let (url, path) = text.split_once('#').unwrap_or((text, ""));
                let path = percent::unescape_name(path).map_err(|_| {
                    anyhow!("cannot read the name in `{text}`: `%` is not followed by two hexadecimal digits")
                })?;
                (orb.string_to_object(url).with_context(|| format!("cannot read `{url}`"))?, path)
            }
            _ => (orb_args::object(orb, text)?, String::new()),
        };
        Ok(Self { root: NamingContextExt::unchecked_narrow(&root), path })
    }

    /// The object of the name.
    pub(crate) fn object(&self) -> anyhow::Result<ObjectRef> {
        use naming_context_ext::ResolveStrError as Error;
        if self.path.is_empty() {
            return Ok(self.root.as_object().clone());
        }
        let object = self.root.resolve_str(&self.path).map_err(|error| match error {
            Error::NotFound(raised) => self.not_found(raised.why, &raised.rest_of_name),
            Error::CannotProceed(raised) => self.cannot_proceed(&raised.rest_of_name),
            Error::InvalidName(_) => self.invalid(),
            Error::System(exception) => anyhow!(exception),
        });
        object
            .with_context(|| format!("cannot resolve `{}`{}", self.path, hint_of_address(&self.path)))?
            .with_context(|| format!("`{}` is bound to nil", self.path))
    }

    /// The context of the name.
    pub(crate) fn context(&self) -> anyhow::Result<NamingContextExt> {
        let object = self.object()?;
        let context = NamingContextExt::unchecked_narrow(&object);
        if self.path.is_empty() || object.is_a("IDL:omg.org/CosNaming/NamingContext:1.0")? {
            return Ok(context);
        }
        bail!("`{}` is not a context: it is an object of type {}", self.path, escape(type_of(&object)))
    }

    /// The components of the name.
    pub(crate) fn name(&self) -> anyhow::Result<Vec<NameComponent>> {
        use naming_context_ext::ToNameError as Error;
        if self.path.is_empty() {
            return Err(common::usage("a name is expected, such as Bank/alice"));
        }
        self.root.to_name(&self.path).map_err(|error| match error {
            Error::InvalidName(_) => self.invalid(),
            Error::System(exception) => anyhow!(exception).context("cannot reach the naming service"),
        })
    }

    /// The error of a name that cannot be followed. `rest` begins with the component that is not bound; where an object is
    /// in the place of a context, services begin it with that object (CosNaming 1.3, 2.4.1), or behind it (omniNames).
    pub(crate) fn not_found(&self, why: naming_context::NotFoundReason, rest: &[NameComponent]) -> anyhow::Error {
        use naming_context::NotFoundReason as Reason;
        let end = name::Path(rest).to_string();
        let first = name::Path(rest.get(..1).unwrap_or_default()).to_string();
        // The whole name up to there, if the service repeats its end.
        let begin = self.path.strip_suffix(&end).unwrap_or_default();
        let name = format!("{begin}{first}");
        match why {
            Reason::MissingNode => anyhow!("`{}` is not bound", escape(&name)),
            Reason::NotContext => {
                anyhow!("the name leads through an object that is no context (from `{}` on)", escape(&end))
            }
            Reason::NotObject => anyhow!("`{}` is bound to a context, not to an object", escape(&name)),
        }
    }

    pub(crate) fn cannot_proceed(&self, rest: &[NameComponent]) -> anyhow::Error {
        anyhow!("the naming service cannot proceed at `{}`", escape(&name::Path(rest).to_string()))
    }

    pub(crate) fn invalid(&self) -> anyhow::Error {
        anyhow!("`{}` is not a name: components are ID or ID.KIND, with `\\` before `/`, `.` and `\\`", self.path)
    }
}

/// The object of a URL, or of a name below the initial reference `NameService`.
pub(crate) fn object(orb: &Orb, text: &str) -> anyhow::Result<ObjectRef> {
    if is_url(text) {
        return orb_args::object(orb, text);
    }
    Place::resolve(orb, text)?.object()
}

/// The naming service of the options.
fn service(orb: &Orb) -> anyhow::Result<ObjectRef> {
    orb.resolve_initial_references("NameService").context("cannot use the given initial reference `NameService`")
}

/// Whether a text is a URL, rather than a name.
pub(crate) fn is_url(text: &str) -> bool {
    ["ior", "corbaloc", "corbaname", "file", "http", "https"].iter().any(|scheme| scheme_is(text, scheme))
}

fn scheme_is(text: &str, scheme: &str) -> bool {
    text.split_once(':').is_some_and(|(given, _)| given.eq_ignore_ascii_case(scheme))
}

/// Calls a function with all bindings of a context, some hundreds at a time; it returns whether to go on. A server may have
/// an iterator without an end, so the deadline bounds all calls together.
pub(crate) fn each_binding(
    context: &NamingContextExt,
    deadline: Deadline,
    act: &mut dyn FnMut(Binding) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let (mut bindings, iterator) = bounded(context, deadline)?.list(CHUNK)?;
    let mut goes_on = iterator.is_some();
    let ended = loop {
        let mut outcome = Ok(true);
        for binding in bindings {
            outcome = act(binding);
            if !matches!(outcome, Ok(true)) {
                break;
            }
        }
        match (&iterator, &outcome) {
            (Some(iterator), Ok(true)) if goes_on => {
                let object = match bound(iterator.as_object(), deadline) {
                    Ok(object) => object,
                    Err(error) => break Err(error),
                };
                (goes_on, bindings) = BindingIterator::unchecked_narrow(&object).next_n(CHUNK)?;
            }
            _ => break outcome,
        }
    };
    if let Some(iterator) = &iterator {
        // It ends by itself later.
        _ = iterator.destroy();
    }
    ended.map(drop)
}

/// All bindings of a context by name.
pub(crate) fn sorted_bindings(
    context: &NamingContextExt,
    deadline: Deadline,
) -> anyhow::Result<Vec<(String, Binding)>> {
    let mut all = Vec::new();
    each_binding(context, deadline, &mut |binding| {
        let name = name::to_string(&binding.binding_name);
        all.push((name, binding));
        Ok(true)
    })?;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

/// The context with the time that is left for a call.
pub(crate) fn bounded(context: &NamingContextExt, deadline: Deadline) -> anyhow::Result<NamingContextExt> {
    Ok(NamingContextExt::unchecked_narrow(&bound(context.as_object(), deadline)?))
}

pub(crate) fn is_context(binding: &Binding) -> bool {
    binding.binding_type == BindingType::Ncontext
}

/// The type in a reference, or a word for a reference without one.
pub(crate) fn type_of(object: &ObjectRef) -> &str {
    match object.type_id() {
        "" => "unknown",
        id => id,
    }
}

/// The remedy for a name that looks like `HOST:PORT/KEY`.
fn hint_of_address(name: &str) -> String {
    let port = name.split_once('/').and_then(|(address, _)| address.rsplit_once(':')).map(|(_, port)| port);
    match port {
        Some(port) if port.parse::<u16>().is_ok() => {
            format!(" as a name; an object at an address is `corbaloc::{name}`")
        }
        _ => String::new(),
    }
}
