//! A client of omniORB with stubs of its own IDL of the service, and an evaluator of dynamic properties
//! (`peers/omniorb/trading.cc`).

use std::path::Path;
use std::process::Command;

use spandrel::{Endpoint, Orb};
use spandrel_test_support::omniorb_peer;
use spandrel_trading::{TradingOptions, TradingService};

#[test]
fn omniorb_uses_types_offers_dynamic_properties_and_links() {
    if !Path::new("/usr/share/idl/omniORB/COS/CosTrading.idl").exists() {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "omniORB's IDL files are not installed");
        eprintln!("absent: omniORB's IDL files (Debian package omniorb-idl)");
        return;
    }
    let Some(client) = omniorb_peer("trading", Path::new(env!("CARGO_TARGET_TMPDIR"))) else { return };
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let service = TradingService::start(&orb, TradingOptions::default()).unwrap();
    let output = Command::new(client).arg(service.lookup().to_string()).output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && lines == "ok\n", "{lines}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(service.offers(), 2);
    service.stop().unwrap();
    orb.shutdown().unwrap();
}
