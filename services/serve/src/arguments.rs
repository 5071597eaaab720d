//! The arguments of services.

use clap::Parser;
use spandrel::net::ipc::inet::Addr;

/// The reason for which arguments are refused.
pub(crate) type ArgumentError = Box<dyn std::error::Error + Send + Sync>;

/// Reads the arguments of a directive.
pub(crate) fn parse<P: Parser>(arguments: &[String]) -> Result<P, ArgumentError> {
    P::try_parse_from(arguments).map_err(|error| {
        let text = error.to_string();
        // The usage and hints come after an empty line.
        let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let reason = lines.join(" ");
        reason.strip_prefix("error: ").unwrap_or(&reason).into()
    })
}

/// The address of a service, and the limits of its clients.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ListenArgs {
    /// The port on the loopback interface [default: that of the service]
    #[arg(short = 'p', value_name = "PORT", conflicts_with = "address")]
    port: Option<u16>,
    /// The address, for other interfaces
    #[arg(short = 'a', value_name = "ADDRESS:PORT")]
    address: Option<Addr>,
    /// The maximum number of connections
    #[arg(short = 'm', value_name = "NUMBER", default_value_t = 1_000)]
    pub(crate) most: usize,
    /// The time in seconds after which a connection without input is closed
    #[arg(short = 'i', value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) idle: u64,
}

impl ListenArgs {
    pub(crate) fn address(&self, default_port: u16) -> Addr {
        self.address.unwrap_or_else(|| Addr::loopback(self.port.unwrap_or(default_port)))
    }
}
