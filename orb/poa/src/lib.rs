//! The portable object adapter: from object key to servant.
