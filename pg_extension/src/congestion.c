/*
 * The congestion control of the client's connection while a result is sent, as
 * dray.congestion_control says.
 *
 * The socket is the session's, and other statements use it too: what it had before comes back when
 * the statement ends, however it ends. A kernel that does not have the one that was named, or does
 * not give it to this user, keeps its own.
 */
#include "dray.h"

/*
 * Nothing of these is used here, and their headers may not be installed. The members of Port stay
 * where they are.
 */
#undef ENABLE_GSS
#undef USE_OPENSSL
#include "libpq/libpq.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* TCP_CA_NAME_MAX of Linux. */
#define NAME_BYTES_MAX 16

static char *wanted = NULL;
/* What the socket had; empty if it was not changed. */
static char before[NAME_BYTES_MAX];

void
dray_define_congestion_control(void)
{
	DefineCustomStringVariable("dray.congestion_control",
							   "TCP congestion control for results in format dray, such as bbr; empty for the connection's own.",
							   NULL, &wanted, "", PGC_USERSET, 0, NULL, NULL, NULL);
}

void
dray_choose_congestion_control(void)
{
	socklen_t	len = NAME_BYTES_MAX;
	char		name[NAME_BYTES_MAX];

	before[0] = '\0';
	if (wanted == NULL || wanted[0] == '\0' || MyProcPort->laddr.addr.ss_family == AF_UNIX)
		return;
	if (getsockopt(MyProcPort->sock, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 && len > 0 &&
		setsockopt(MyProcPort->sock, IPPROTO_TCP, TCP_CONGESTION, wanted, strlen(wanted)) == 0)
		strlcpy(before, name, NAME_BYTES_MAX);
}

void
dray_restore_congestion_control(void)
{
	if (before[0] != '\0')
		(void) setsockopt(MyProcPort->sock, IPPROTO_TCP, TCP_CONGESTION, before, strlen(before));
	before[0] = '\0';
}
