//! One macro that makes an acceptor of a listener.

/// Gives `$Acceptor`, whose field `listener` is a [`Listener`](super::Listener) or something like it, its methods; `$made` makes a
/// stream and an address of what was accepted.
macro_rules! acceptor {
    ($Acceptor:ident, $Stream:ty, $Addr:ty, $made:expr) => {
        impl $Acceptor {
            /// Waits for a connection and tells where it came from.
            ///
            /// Goes on after a signal, and after a connection that its peer gave up before it was accepted. When no descriptors are left
            /// (`EMFILE`, `ENFILE`), a connection that comes is closed at once, with a spare descriptor, and counted
            /// ([`shed`](Self::shed)): it neither waits for a time that may never come, nor makes this acceptor spin. When the system is
            /// short of memory, this waits a little and tries again.
            ///
            /// # Errors
            /// [`NotConnected`](std::io::ErrorKind::NotConnected) once [`shutdown`](Self::shutdown) was called;
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) when it must not block and nobody is there. Any other error concerns
            /// this call only. An acceptor that must not block reports a shortage of memory, or of descriptors when even the spare one
            /// is lost: leave it alone for some milliseconds then, since it may stay ready all the while.
            pub fn accept(&self) -> ::std::io::Result<($Stream, $Addr)> {
                let accepted = self.listener.accept()?;
                ($made)(accepted)
            }

            /// Stops accepting: every [`accept`](Self::accept), waiting or yet to come, ends with
            /// [`NotConnected`](std::io::ErrorKind::NotConnected). Connections not yet accepted are reset. Calling it again does nothing.
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn shutdown(&self) -> ::std::io::Result<()> {
                self.listener.shutdown()
            }

            /// Whether [`shutdown`](Self::shutdown) was called.
            #[must_use]
            pub fn is_shut_down(&self) -> bool {
                self.listener.is_shut_down()
            }

            /// How many connections were closed as soon as they were accepted because no descriptors were left.
            #[must_use]
            pub fn shed(&self) -> u64 {
                self.listener.shed()
            }

            /// Where it listens, with what the system chose if it was asked to.
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn local_addr(&self) -> ::std::io::Result<$Addr> {
                <$Addr>::from_system(&self.listener.local_addr()?)
            }

            /// Whether `accept` waits for a connection or fails at once with [`WouldBlock`](std::io::ErrorKind::WouldBlock). Accepted
            /// streams wait in any case.
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn set_nonblocking(&self, on: bool) -> ::std::io::Result<()> {
                self.listener.set_nonblocking(on)
            }
        }

        impl $crate::Accept for $Acceptor {
            type Addr = $Addr;
            type Stream = $Stream;

            fn accept(&self) -> ::std::io::Result<($Stream, $Addr)> {
                $Acceptor::accept(self)
            }
            fn set_nonblocking(&self, on: bool) -> ::std::io::Result<()> {
                $Acceptor::set_nonblocking(self, on)
            }
            fn shutdown(&self) -> ::std::io::Result<()> {
                $Acceptor::shutdown(self)
            }
            fn local_addr(&self) -> ::std::io::Result<$Addr> {
                $Acceptor::local_addr(self)
            }
        }

        impl $crate::Pollable for $Acceptor {
            fn handle(&self) -> $crate::Handle<'_> {
                $crate::Pollable::handle(&self.listener)
            }
        }

        #[cfg(unix)]
        impl ::std::os::fd::AsFd for $Acceptor {
            fn as_fd(&self) -> ::std::os::fd::BorrowedFd<'_> {
                $crate::Pollable::handle(self)
            }
        }

        #[cfg(windows)]
        impl ::std::os::windows::io::AsSocket for $Acceptor {
            fn as_socket(&self) -> ::std::os::windows::io::BorrowedSocket<'_> {
                $crate::Pollable::handle(self)
            }
        }
    };
}

pub(crate) use acceptor;
