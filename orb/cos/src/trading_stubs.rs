// The stubs of the trading service, and offers from text.
include!("cos_trading.rs");

pub mod offer_text;
