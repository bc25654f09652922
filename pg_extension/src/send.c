/*
 * Frames to the client, as CopyData messages.
 *
 * libpq's buffer has 8 kB, and before version 17 every byte passes through it, with a system call
 * for each filling. Chunks go past it: what it holds is flushed, and then the connection's
 * secure_write is called as libpq itself calls it. It encrypts, it waits, and it lets a backend die
 * whose client has stopped reading. A message is never left unfinished but by the end of the
 * connection, so interrupts are looked for only between messages.
 */
#include "dray.h"

/*
 * Nothing of these is used here, and their headers may not be installed. The members of Port stay
 * where they are.
 */
#undef ENABLE_GSS
#undef USE_OPENSSL
#include "libpq/libpq.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "tcop/tcopprot.h"

#include <netinet/in.h>

/* A frame may span messages: a client need not take one that is larger than this. */
#define MESSAGE_BYTES_MAX (1024 * 1024)
/* A small result leaves libpq's buffer with the end of the statement, as one packet. */
#define SMALL_FRAME_BYTES 4096
/* Small parts are gathered here, and so are large ones where that saves system calls. */
#define GATHER_BYTES (64 * 1024)

typedef struct Gathered
{
	size_t		len;
	char		bytes[GATHER_BYTES];
} Gathered;

static Gathered gathered;

/*
 * The client is gone: the statement ends at the next CHECK_FOR_INTERRUPTS. As internal_flush of
 * pqcomm.c, which must not raise an error either that would be sent to this client.
 */
static void
connection_lost(void)
{
	ereport(COMMERROR, (errcode_for_socket_access(), errmsg("could not send data to client: %m")));
	ClientConnectionLost = 1;
	InterruptPending = 1;
}

static void
write_bytes(const char *bytes, size_t len)
{
	while (len > 0 && !ClientConnectionLost)
	{
		ssize_t		written = secure_write(MyProcPort, (void *) bytes, len);

		if (written > 0)
		{
			bytes += written;
			len -= written;
		}
		else if (errno != EINTR)
			connection_lost();
	}
}

static void
write_gathered(void)
{
	size_t		len = gathered.len;

	/* Before, because an interrupt may end it: what is half sent must not be sent again. */
	gathered.len = 0;
	write_bytes(gathered.bytes, len);
}

static void
put(const char *bytes, size_t len)
{
	if (gathered.len + len > GATHER_BYTES)
		write_gathered();
	if (len >= GATHER_BYTES / 2)
	{
		write_gathered();
		write_bytes(bytes, len);
		return;
	}
	memcpy(gathered.bytes + gathered.len, bytes, len);
	gathered.len += len;
}

/*
 * Whether the client is on this host: a byte then costs less than to make it smaller.
 */
bool
dray_client_is_local(void)
{
	const struct sockaddr_storage *here = &MyProcPort->laddr.addr;
	const struct sockaddr_storage *there = &MyProcPort->raddr.addr;

	if (here->ss_family != there->ss_family)
		return false;
	switch (here->ss_family)
	{
		case AF_UNIX:
			return true;
		case AF_INET:
			return ((const struct sockaddr_in *) here)->sin_addr.s_addr ==
				((const struct sockaddr_in *) there)->sin_addr.s_addr;
		case AF_INET6:
			return memcmp(&((const struct sockaddr_in6 *) here)->sin6_addr,
						  &((const struct sockaddr_in6 *) there)->sin6_addr, sizeof(struct in6_addr)) == 0;
		default:
			return false;
	}
}

/*
 * To be asked what it carries, no more.
 */
int
dray_client_socket(void)
{
	return MyProcPort->sock;
}

/*
 * CopyOutResponse: binary, so many columns.
 */
void
dray_send_copy_out(int columns)
{
	StringInfoData message;

	pq_beginmessage(&message, 'H');
	pq_sendbyte(&message, 1);
	pq_sendint16(&message, columns);
	for (int i = 0; i < columns; i++)
		pq_sendint16(&message, 1);
	pq_endmessage(&message);
}

/*
 * A frame as CopyData messages, past libpq's buffer.
 */
static void
write_messages(const DrayPart *parts, size_t count, size_t left)
{
	size_t		message = 0;

	gathered.len = 0;
	for (size_t i = 0; i < count; i++)
	{
		const char *bytes = parts[i].bytes;
		size_t		len = parts[i].len;

		while (len > 0)
		{
			size_t		now;

			if (message == 0)
			{
				uint32		length;

				message = Min(left, MESSAGE_BYTES_MAX);
				length = pg_hton32((uint32) message + 4);
				put("d", 1);
				put((const char *) &length, sizeof(length));
			}
			now = Min(len, message);
			put(bytes, now);
			bytes += now;
			len -= now;
			message -= now;
			left -= now;
		}
	}
	write_gathered();
}

/*
 * A frame, or a state frame and the chunk that needs it, in as many CopyData messages as it takes.
 */
void
dray_send_frame(const DrayPart *parts, size_t count)
{
	size_t		left = 0;
	CommandDest destination;

	for (size_t i = 0; i < count; i++)
		left += parts[i].len;

	if (left <= SMALL_FRAME_BYTES)
	{
		StringInfoData small;

		pq_beginmessage(&small, 'd');
		for (size_t i = 0; i < count; i++)
			pq_sendbytes(&small, parts[i].bytes, parts[i].len);
		pq_endmessage(&small);
		return;
	}

	/* What libpq holds comes first; this also makes the socket wait. */
	if (pq_flush() != 0)
		return;

	/*
	 * Nothing else may be written before the message is whole, as libpq's own PqCommBusy sees to: a
	 * signal handler (quickdie) or a wait (the postmaster's death) may report something to the
	 * client. After an error nobody knows how much of a message the client has, so that the session
	 * can't go on: it is reported to the log, and the session ends, while the destination is still
	 * none.
	 */
	destination = whereToSendOutput;
	whereToSendOutput = DestNone;
	PG_TRY();
	{
#ifdef DRAY_TEST_ALLOCATOR
		if (dray_test_fail_send)
			elog(ERROR, "a send that fails, as a test wants it");
#endif
		write_messages(parts, count, left);
	}
	PG_CATCH();
	{
		EmitErrorReport();
		FlushErrorState();
		ereport(FATAL,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("terminating connection because a message to the client could not be completed")));
	}
	PG_END_TRY();
	whereToSendOutput = destination;
}

/*
 * The client is to know what has been sent although there is little of it.
 */
void
dray_send_now(void)
{
	pq_flush();
}

void
dray_send_copy_done(void)
{
	pq_putemptymessage('c');
}
