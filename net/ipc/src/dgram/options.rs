//! Options and handles of the datagram types, the same for each: macros over types with a field `socket`.

/// Blocking mode, timeouts and queues, for any family.
macro_rules! common_options {
    ($type:ty) => {
        /// Blocking mode, timeouts and queues.
        impl $type {
            /// Whether transfers fail at once with [`io::ErrorKind::WouldBlock`] instead of waiting.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
                self.socket.socket().set_nonblocking(on)
            }

            /// The time limit of one receive call (`SO_RCVTIMEO`); `None` waits for ever.
            ///
            /// # Errors
            /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
            pub fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.socket.set_recv_timeout(timeout)
            }

            /// See [`set_recv_timeout`](Self::set_recv_timeout).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn recv_timeout(&self) -> io::Result<Option<Duration>> {
                self.socket.socket().read_timeout()
            }

            /// The time limit of one send call (`SO_SNDTIMEO`); `None` waits for ever.
            ///
            /// # Errors
            /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
            pub fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.socket.set_send_timeout(timeout)
            }

            /// See [`set_send_timeout`](Self::set_send_timeout).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn send_timeout(&self) -> io::Result<Option<Duration>> {
                self.socket.socket().write_timeout()
            }

            /// Sets the size of the send queue in octets (`SO_SNDBUF`).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn set_send_queue(&self, octets: usize) -> io::Result<()> {
                self.socket.socket().set_send_buffer_size(octets)
            }

            /// The size of the send queue as reported by the system: Linux reports twice the size that was
            /// set.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn send_queue(&self) -> io::Result<usize> {
                self.socket.socket().send_buffer_size()
            }

            /// Sets the size of the receive queue in octets (`SO_RCVBUF`). Datagrams that arrive while it is
            /// full are lost (UDP) or wait at their sender (UNIX-domain sockets).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn set_recv_queue(&self, octets: usize) -> io::Result<()> {
                self.socket.socket().set_recv_buffer_size(octets)
            }

            /// The size of the receive queue as reported by the system: Linux reports twice the size that was
            /// set.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn recv_queue(&self) -> io::Result<usize> {
                self.socket.socket().recv_buffer_size()
            }

            /// Takes the pending error of this endpoint (`SO_ERROR`), if any.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                self.socket.socket().take_error()
            }
        }

        impl Pollable for $type {
            #[inline]
            fn handle(&self) -> Handle<'_> {
                self.socket.handle()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            #[inline]
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.socket.handle()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $type {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                self.socket.handle()
            }
        }
    };
}

/// Conversion into an owned handle.
macro_rules! given_away {
    ($type:ty) => {
        #[cfg(unix)]
        impl From<$type> for std::os::fd::OwnedFd {
            fn from(endpoint: $type) -> Self {
                endpoint.socket.into_socket().into()
            }
        }

        #[cfg(windows)]
        impl From<$type> for std::os::windows::io::OwnedSocket {
            fn from(endpoint: $type) -> Self {
                endpoint.socket.into_socket().into()
            }
        }
    };
}

/// Conversion from a handle made elsewhere: `$take_over` checks a `Socket` and wraps it in the type.
macro_rules! taken_over {
    ($type:ty, $take_over:expr) => {
        /// Takes over a socket made elsewhere, such as one inherited from another process, after checking its
        /// kind.
        ///
        /// # Errors
        /// [`io::ErrorKind::InvalidInput`] if it is a socket of another kind; it is closed then.
        #[cfg(unix)]
        impl TryFrom<std::os::fd::OwnedFd> for $type {
            type Error = io::Error;
            fn try_from(handle: std::os::fd::OwnedFd) -> io::Result<Self> {
                $take_over(socket2::Socket::from(handle))
            }
        }

        /// Takes over a socket made elsewhere, such as one inherited from another process, after checking its
        /// kind.
        ///
        /// # Errors
        /// [`io::ErrorKind::InvalidInput`] if it is a socket of another kind; it is closed then.
        #[cfg(windows)]
        impl TryFrom<std::os::windows::io::OwnedSocket> for $type {
            type Error = io::Error;
            fn try_from(handle: std::os::windows::io::OwnedSocket) -> io::Result<Self> {
                $take_over(socket2::Socket::from(handle))
            }
        }
    };
}

pub(crate) use {common_options, given_away, taken_over};
