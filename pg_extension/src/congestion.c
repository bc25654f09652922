/*
 * The congestion control of the client's connection while a result is sent: the setting
 * dray.congestion_control.
 *
 * Other statements of the session use the socket too, so its earlier congestion control is restored
 * when the statement ends, however it ends. A kernel that lacks the named one, or denies it to this
 * user, keeps the present one.
 */
#include "dray.h"

/*
 * GSSAPI and OpenSSL are not used here, and their headers may not be installed. The layout of Port
 * is the same without them.
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

static char *setting = NULL;
/* The earlier congestion control of the socket; empty if it was not changed. */
static char before[NAME_BYTES_MAX];

void
dray_define_congestion_control(void)
{
	DefineCustomStringVariable("dray.congestion_control",
							   "TCP congestion control for results in format dray, such as bbr; "
							   "empty for the connection's own.",
							   NULL, &setting, "", PGC_USERSET, 0, NULL, NULL, NULL);
}

void
dray_choose_congestion_control(void)
{
	socklen_t	len = NAME_BYTES_MAX;
	char		name[NAME_BYTES_MAX];

	before[0] = '\0';
	if (setting == NULL || setting[0] == '\0' || MyProcPort->laddr.addr.ss_family == AF_UNIX)
		return;
	if (getsockopt(MyProcPort->sock, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 && len > 0 &&
		setsockopt(MyProcPort->sock, IPPROTO_TCP, TCP_CONGESTION, setting, strlen(setting)) == 0)
		strlcpy(before, name, NAME_BYTES_MAX);
}

void
dray_restore_congestion_control(void)
{
	if (before[0] != '\0')
		(void) setsockopt(MyProcPort->sock, IPPROTO_TCP, TCP_CONGESTION, before, strlen(before));
	before[0] = '\0';
}
