/*
 * Sends frames to the client, as CopyData messages.
 *
 * Before version 17, every byte passes through libpq's buffer of 8 kB, with a system call each time
 * it is full. Chunks bypass it: it is flushed, and then secure_write is called as libpq itself
 * calls it. secure_write encrypts, waits, and lets a backend be terminated if its client has
 * stopped reading. Only the end of the connection may leave a message unfinished, so interrupts are
 * processed between messages only.
 */
#include "dray.h"

/*
 * GSSAPI and OpenSSL are not used here, and their headers may not be installed. The layout of Port
 * is the same without them.
 */
#undef ENABLE_GSS
#undef USE_OPENSSL
#include "libpq/libpq.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "tcop/tcopprot.h"

#include <netinet/in.h>

/* The largest message that every client accepts. A longer frame spans several. */
#define MESSAGE_BYTES_MAX (1024 * 1024)
/* Frames up to this size use libpq's buffer: a small result then leaves as one packet. */
#define SMALL_FRAME_BYTES 4096
/* The size of the buffer for parts below half of it: one system call sends several of them. */
#define GATHER_BYTES (64 * 1024)

typedef struct Gathered
{
	size_t		len;
	char		bytes[GATHER_BYTES];
} Gathered;

static Gathered gathered;

/*
 * Notes that the client is gone, as internal_flush of pqcomm.c does: the statement ends at the next
 * CHECK_FOR_INTERRUPTS. No error is raised, because it would be sent to this client.
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

	/* First, because an error may end the write, and bytes must not be sent twice. */
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
 * Whether the client is on this host. Sending a byte then costs less than compressing it.
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
						  &((const struct sockaddr_in6 *) there)->sin6_addr,
						  sizeof(struct in6_addr)) == 0;
		default:
			return false;
	}
}

/*
 * The client's socket, to ask the kernel what it delivers.
 */
int
dray_client_socket(void)
{
	return MyProcPort->sock;
}

/*
 * Sends CopyOutResponse: all columns are binary.
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
 * Sends a frame of `left` bytes as CopyData messages, bypassing libpq's buffer.
 */
static void
write_messages(const DrayPart *parts, size_t count, size_t left)
{
	/* The bytes that the present message still needs. */
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
 * Sends a frame, or a state frame and its chunk, as one or more CopyData messages.
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

	/* Earlier messages are in libpq's buffer. The flush also makes the socket blocking. */
	if (pq_flush() != 0)
		return;

	/*
	 * Nothing else may be written before the message is complete; PqCommBusy ensures that in libpq.
	 * But a signal handler (quickdie) or a wait (the postmaster's death) may report something to
	 * the client, so there is no destination for reports meanwhile. After an error, it is not known
	 * how much of the message has been sent, and the session can't go on. The error is logged, and
	 * the session ends before the destination is restored.
	 */
	destination = whereToSendOutput;
	whereToSendOutput = DestNone;
	PG_TRY();
	{
#ifdef DRAY_TEST_ALLOCATOR
		if (dray_test_fail_send)
			elog(ERROR, "a test lets this send fail");
#endif
		write_messages(parts, count, left);
	}
	PG_CATCH();
	{
		EmitErrorReport();
		FlushErrorState();
		ereport(FATAL,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("terminating connection because a message to the client "
						"could not be completed")));
	}
	PG_END_TRY();
	whereToSendOutput = destination;
}

/*
 * Sends what libpq's buffer holds, although it is not full.
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
