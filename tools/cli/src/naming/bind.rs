//! `spandrel bind`: binds a name to an object.

use anyhow::{Context as _, anyhow, bail};
use spandrel::net::error::escape;
use spandrel::services::cos_naming::{NamingContext, naming_context};
use spandrel::services::offer_text::{TextOffer, default_trader};

use super::Place;
use crate::client_args::ClientArgs;
use crate::common;
use crate::json::JsonObject;
use crate::orb_args::reference_text;

const EXAMPLES: &str = "\
Examples:
  spandrel bind Bank/alice IOR:0100...
  some-server | head -1 | spandrel bind --parents Bank/alice -
  spandrel bind --rebind corbaname::names.example#Bank/alice corbaloc::bank.example:2810/alice
  spandrel bind Office/laser IOR:0100... --offer Printer name=laser ppm=35
  spandrel bind --context Bank
  spandrel bind --context Other corbaloc::other.example:2809/NameService

Exit codes: 0 done, 1 failed (also if the name is bound already), 2 wrong usage.";

/// Bind a name to an object, or to a new context.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name, such as Bank/alice, or corbaname::host#Bank/alice
    #[arg(index = 1)]
    name: String,
    /// The object: a reference as IOR:, corbaloc: or corbaname:, another name such as Bank/bob, or - to read one of them from
    /// standard input; --context without one makes a new context
    #[arg(index = 2, required_unless_present = "context")]
    reference: Option<String>,
    /// Bind a context, which then takes part in longer names
    #[arg(short, long)]
    context: bool,
    /// Replace a binding of the name
    #[arg(short, long)]
    rebind: bool,
    /// Make the contexts above that do not exist
    #[arg(short, long)]
    parents: bool,
    /// Export the object as an offer of this service type with these properties, too. The trader is the initial reference
    /// TradingService, or that at 127.0.0.1:2811
    #[arg(long, num_args = 1.., value_names = ["TYPE", "NAME=VALUE"], requires = "reference")]
    offer: Vec<String>,
    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.client.reported(self.bind())
    }

    fn bind(&self) -> anyhow::Result<()> {
        let orb = self.client.orb()?;
        let place = Place::resolve(&orb, &self.name)?;
        let name = place.name()?;
        let object = match &self.reference {
            None => None, // a new context
            Some(reference) => {
                let text = reference_text(reference)?;
                Some(super::object(&orb, &text)?)
            }
        };
        // It is read before anything is changed.
        let offer = self.offer.split_first().map(|(service_type, properties)| {
            let offer = default_trader(&orb)
                .map_err(anyhow::Error::from)
                .and_then(|lookup| Ok(TextOffer::read(&lookup, service_type, properties)?));
            offer.with_context(|| format!("cannot offer `{}` as `{}`", place.path, escape(service_type)))
        });
        let offer = offer.transpose()?;
        if self.parents {
            self.make_parents(&place, &name)?;
        }
        let root = &place.root;
        let outcome = match &object {
            None => match root.bind_new_context(&name) {
                Ok(_) => Ok(()),
                Err(naming_context::BindNewContextError::AlreadyBound(_)) if self.rebind => {
                    bail!("cannot bind `{}`: a new context replaces no binding", place.path)
                }
                Err(error) => Err(failure(&place, error)),
            },
            Some(object) if self.context => {
                let context = NamingContext::unchecked_narrow(object);
                if self.rebind {
                    root.rebind_context(&name, Some(&context)).map_err(|error| failure(&place, error))
                } else {
                    root.bind_context(&name, Some(&context)).map_err(|error| failure(&place, error))
                }
            }
            Some(object) if self.rebind => root.rebind(&name, Some(object)).map_err(|error| failure(&place, error)),
            Some(object) => root.bind(&name, Some(object)).map_err(|error| failure(&place, error)),
        };
        outcome.with_context(|| format!("cannot bind `{}`", place.path))?;
        let exported = offer.zip(object).map(|(offer, object)| {
            offer.export(&object).with_context(|| format!("`{}` is bound, and cannot be offered", place.path))
        });
        let exported = exported.transpose()?;
        match exported {
            _ if self.client.json => {
                let object = JsonObject::new().value("bound", place.path).optional("exported", exported);
                common::print(&format!("{}\n", object.finish()))
            }
            Some(id) => common::print(&format!("{}\n", escape(&id))),
            None => Ok(()),
        }
    }

    fn make_parents(
        &self,
        place: &Place,
        name: &[spandrel::services::cos_naming::NameComponent],
    ) -> anyhow::Result<()> {
        for length in 1..name.len() {
            match place.root.bind_new_context(&name[..length]) {
                Ok(_) | Err(naming_context::BindNewContextError::AlreadyBound(_)) => {}
                Err(error) => return Err(failure(place, error)).context("cannot make a context above the name"),
            }
        }
        Ok(())
    }
}

/// The exceptions of an operation that binds or unbinds.
pub(super) enum Raised {
    NotFound(naming_context::NotFound),
    CannotProceed(naming_context::CannotProceed),
    InvalidName,
    AlreadyBound,
    System(spandrel::SystemException),
}

macro_rules! raised {
    ($($error:ident: $($variant:ident)*;)*) => {$(
        impl From<naming_context::$error> for Raised {
            fn from(error: naming_context::$error) -> Self {
                use naming_context::$error as Error;
                match error {
                    Error::NotFound(raised) => Self::NotFound(raised),
                    Error::CannotProceed(raised) => Self::CannotProceed(raised),
                    Error::InvalidName(_) => Self::InvalidName,
                    Error::System(exception) => Self::System(exception),
                    $(Error::$variant(_) => Self::$variant,)*
                }
            }
        }
    )*};
}

// Operations with the same exceptions have one error type.
raised! {
    BindError: AlreadyBound;
    UnbindError: ;
}

/// The error of an operation for people.
pub(super) fn failure(place: &Place, error: impl Into<Raised>) -> anyhow::Error {
    match error.into() {
        Raised::NotFound(raised) => place.not_found(raised.why, &raised.rest_of_name),
        Raised::CannotProceed(raised) => place.cannot_proceed(&raised.rest_of_name),
        Raised::InvalidName => place.invalid(),
        Raised::AlreadyBound => anyhow!("it is bound already (--rebind replaces a binding)"),
        Raised::System(exception) => anyhow!(exception),
    }
}
