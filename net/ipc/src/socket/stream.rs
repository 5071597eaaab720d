//! The macro that implements a stream over a socket.

/// Implements the transfers of `$Stream`, whose field `$socket` is a [`StreamSocket`](super::StreamSocket),
/// and the other methods of stream sockets.
macro_rules! socket_stream {
    ($Stream:ident, $socket:tt) => {
        impl $crate::Receive for $Stream {
            #[inline]
            fn recv(&self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                $crate::socket::calls::recv(&self.$socket, buffer)
            }
            #[inline]
            fn recv_v(&self, slices: &mut [::std::io::IoSliceMut<'_>]) -> ::std::io::Result<usize> {
                $crate::socket::calls::recv_v(&self.$socket, slices)
            }
            #[inline]
            fn try_recv(&self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                $crate::socket::calls::try_recv(&self.$socket, buffer)
            }
            #[inline]
            fn try_recv_v(&self, slices: &mut [::std::io::IoSliceMut<'_>]) -> ::std::io::Result<usize> {
                $crate::socket::calls::try_recv_v(&self.$socket, slices)
            }
            fn set_recv_timeout(&self, timeout: Option<::std::time::Duration>) -> ::std::io::Result<()> {
                self.$socket.set_read_timeout($crate::socket::timeout(timeout)?)
            }
        }

        impl $crate::Transmit for $Stream {
            #[inline]
            fn send(&self, data: &[u8]) -> ::std::io::Result<usize> {
                $crate::socket::calls::send(&self.$socket, data)
            }
            #[inline]
            fn send_v(&self, slices: &[::std::io::IoSlice<'_>]) -> ::std::io::Result<usize> {
                $crate::socket::calls::send_v(&self.$socket, slices)
            }
            #[inline]
            fn try_send(&self, data: &[u8]) -> ::std::io::Result<usize> {
                $crate::socket::calls::try_send(&self.$socket, data)
            }
            #[inline]
            fn try_send_v(&self, slices: &[::std::io::IoSlice<'_>]) -> ::std::io::Result<usize> {
                $crate::socket::calls::try_send_v(&self.$socket, slices)
            }
            fn set_send_timeout(&self, timeout: Option<::std::time::Duration>) -> ::std::io::Result<()> {
                self.$socket.set_write_timeout($crate::socket::timeout(timeout)?)
            }
        }

        impl $crate::Transfer for $Stream {
            fn set_nonblocking(&self, on: bool) -> ::std::io::Result<()> {
                self.$socket.set_nonblocking(on)
            }
            fn send_socket(&self) -> Option<$crate::Handle<'_>> {
                Some($crate::Pollable::handle(self))
            }
            fn shutdown(&self, how: $crate::Shutdown) -> ::std::io::Result<()> {
                self.$socket.shutdown(how)
            }
            fn abort(&self) -> ::std::io::Result<()> {
                if $crate::socket::calls::has_unread(&self.$socket) {
                    self.$socket.set_linger(Some(::std::time::Duration::ZERO))?;
                }
                self.$socket.shutdown($crate::Shutdown::Both)
            }
        }

        $crate::inherent_transfer!($Stream);

        /// Methods of every stream over a socket.
        impl $Stream {
            /// Like [`recv`](Self::recv), but leaves the octets in the queue.
            ///
            /// # Errors
            /// As [`recv`](Self::recv).
            pub fn peek(&self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                $crate::socket::calls::peek(&self.$socket, buffer)
            }

            /// Sends all octets of `range` of a file, without copying them into this process where the system
            /// supports it (`sendfile`). The file's own position is not used, and on Unix not changed.
            ///
            /// Where the kernel sends, it raises SIGPIPE when the peer has closed; Rust programs ignore it by
            /// default.
            ///
            /// # Errors
            /// As [`send_n`](Self::send_n); [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) when the
            /// file ends before the range.
            pub fn send_file(
                &self,
                file: &::std::fs::File,
                range: ::std::ops::Range<u64>,
            ) -> Result<(), $crate::TransferError> {
                $crate::socket::send_file(&self.$socket, file, range)
            }

            /// The timeout set with [`set_recv_timeout`](Self::set_recv_timeout) (`SO_RCVTIMEO`).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn recv_timeout(&self) -> ::std::io::Result<Option<::std::time::Duration>> {
                self.$socket.read_timeout()
            }

            /// The timeout set with [`set_send_timeout`](Self::set_send_timeout) (`SO_SNDTIMEO`).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn send_timeout(&self) -> ::std::io::Result<Option<::std::time::Duration>> {
                self.$socket.write_timeout()
            }

            /// Sets the size of the send queue in octets (`SO_SNDBUF`).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn set_send_queue(&self, octets: usize) -> ::std::io::Result<()> {
                self.$socket.set_send_buffer_size(octets)
            }

            /// The size of the send queue as reported by the system: Linux reports twice the size that was
            /// set.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn send_queue(&self) -> ::std::io::Result<usize> {
                self.$socket.send_buffer_size()
            }

            /// Sets the size of the receive queue in octets (`SO_RCVBUF`). To affect the TCP window it must
            /// be set before the connection is made: see the options of the connector and of the acceptor.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn set_recv_queue(&self, octets: usize) -> ::std::io::Result<()> {
                self.$socket.set_recv_buffer_size(octets)
            }

            /// The size of the receive queue as reported by the system: Linux reports twice the size that was
            /// set.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn recv_queue(&self) -> ::std::io::Result<usize> {
                self.$socket.recv_buffer_size()
            }

            /// Takes the pending error of this connection (`SO_ERROR`), if any.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn take_error(&self) -> ::std::io::Result<Option<::std::io::Error>> {
                self.$socket.take_error()
            }
        }

        $crate::socket::handles!($Stream, $socket);
    };
}

/// Implements [`Pollable`](crate::Pollable), borrowing the handle, and conversion into an owned handle.
macro_rules! handles {
    ($Endpoint:ident, $socket:tt) => {
        impl $crate::Pollable for $Endpoint {
            #[inline]
            fn handle(&self) -> $crate::Handle<'_> {
                #[cfg(unix)]
                return ::std::os::fd::AsFd::as_fd(&self.$socket);
                #[cfg(windows)]
                return ::std::os::windows::io::AsSocket::as_socket(&self.$socket);
            }
        }

        #[cfg(unix)]
        impl ::std::os::fd::AsFd for $Endpoint {
            #[inline]
            fn as_fd(&self) -> ::std::os::fd::BorrowedFd<'_> {
                ::std::os::fd::AsFd::as_fd(&self.$socket)
            }
        }

        #[cfg(windows)]
        impl ::std::os::windows::io::AsSocket for $Endpoint {
            fn as_socket(&self) -> ::std::os::windows::io::BorrowedSocket<'_> {
                ::std::os::windows::io::AsSocket::as_socket(&self.$socket)
            }
        }

        impl From<$Endpoint> for $crate::socket::OwnedHandle {
            fn from(endpoint: $Endpoint) -> Self {
                endpoint.$socket.into()
            }
        }
    };
}

pub(crate) use {handles, socket_stream};
