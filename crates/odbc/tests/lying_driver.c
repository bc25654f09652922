/*
 * An ODBC driver that lies. A statement is the name of a lie. Its result has one column, a text of
 * at most ten characters unless the lie says otherwise, and one row.
 */
#include <sql.h>
#include <sqlext.h>
#include <sqlucode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct statement {
    char lie[64];
    SQLULEN array_size;
    SQLULEN *fetched;
    SQLUSMALLINT *status;
    SQLPOINTER value;
    SQLLEN *length;
    SQLLEN *length_of_second;
    SQLLEN width;
    SQLLEN sent[2];
    int done;
    int pieces;
    volatile int cancelled;
};

static int handle;

static int is(const struct statement *s, const char *lie) { return strcmp(s->lie, lie) == 0; }

static SQLSMALLINT wide(SQLWCHAR *to, const char *from) {
    SQLSMALLINT n = 0;
    for (; from[n]; n++) to[n] = (unsigned char)from[n];
    to[n] = 0;
    return n;
}

SQLRETURN SQL_API SQLAllocHandle(SQLSMALLINT type, SQLHANDLE in, SQLHANDLE *out) {
    (void)in;
    *out = type == SQL_HANDLE_STMT ? calloc(1, sizeof(struct statement)) : (SQLHANDLE)&handle;
    if (type == SQL_HANDLE_STMT) ((struct statement *)*out)->array_size = 1;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLFreeHandle(SQLSMALLINT type, SQLHANDLE freed) {
    if (type == SQL_HANDLE_STMT) free(freed);
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLSetEnvAttr(SQLHENV e, SQLINTEGER a, SQLPOINTER v, SQLINTEGER n) {
    (void)e, (void)a, (void)v, (void)n;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLSetConnectAttrW(SQLHDBC c, SQLINTEGER a, SQLPOINTER v, SQLINTEGER n) {
    (void)c, (void)a, (void)v, (void)n;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLDriverConnectW(SQLHDBC c, SQLHWND w, SQLWCHAR *in, SQLSMALLINT n,
                                    SQLWCHAR *out, SQLSMALLINT max, SQLSMALLINT *length,
                                    SQLUSMALLINT completion) {
    (void)c, (void)w, (void)in, (void)n, (void)out, (void)max, (void)length, (void)completion;
    printf("what a driver says\n");
    fflush(stdout);
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLDisconnect(SQLHDBC c) {
    (void)c;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLGetInfoW(SQLHDBC c, SQLUSMALLINT what, SQLPOINTER value, SQLSMALLINT max,
                              SQLSMALLINT *length) {
    (void)c, (void)max;
    if (what == SQL_GETDATA_EXTENSIONS) {
        *(SQLUINTEGER *)value = SQL_GD_ANY_COLUMN | SQL_GD_BLOCK | SQL_GD_BOUND;
    } else if (what == SQL_TXN_CAPABLE) {
        *(SQLUSMALLINT *)value = SQL_TC_ALL;
    } else if (what == SQL_DBMS_NAME) {
        wide(value, "Liar");
        if (length) *length = 32767;
    } else if (what == SQL_DBMS_VER || what == SQL_DRIVER_ODBC_VER) {
        wide(value, "03.80");
        if (length) *length = 10;
    } else {
        return SQL_ERROR;
    }
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLExecDirectW(SQLHSTMT h, SQLWCHAR *sql, SQLINTEGER n) {
    struct statement *s = h;
    const int start = 7; /* behind SELECT */
    int i = 0;
    for (; start + i < n && i < 63; i++) s->lie[i] = (char)sql[start + i];
    s->lie[i] = 0;
    if (is(s, "dies")) abort();
    if (is(s, "writes nowhere")) *(volatile int *)8 = 1;
    if (is(s, "fails for no reason") || is(s, "endless reasons")) return SQL_ERROR;
    if (is(s, "a return code")) return 1234;
    while (is(s, "sleeps") && !s->cancelled) usleep(1000);
    return s->cancelled ? SQL_ERROR : SQL_SUCCESS;
}

SQLRETURN SQL_API SQLCancel(SQLHSTMT h) {
    ((struct statement *)h)->cancelled = 1;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLNumResultCols(SQLHSTMT h, SQLSMALLINT *count) {
    *count = is(h, "minus five columns") ? -5 : is(h, "many columns") ? 32767 : 1;
    if (is(h, "then two long texts")) *count = 2;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLDescribeColW(SQLHSTMT h, SQLUSMALLINT number, SQLWCHAR *name, SQLSMALLINT max,
                                  SQLSMALLINT *length, SQLSMALLINT *type, SQLULEN *size,
                                  SQLSMALLINT *digits, SQLSMALLINT *nullable) {
    (void)number;
    *length = wide(name, "c");
    if (is(h, "a long name")) {
        for (int i = 0; i < max; i++) name[i] = 'n';
        *length = 32767;
    }
    if (is(h, "a name of minus one")) *length = -1;
    *type = SQL_WVARCHAR, *size = 10, *digits = 0, *nullable = SQL_NO_NULLS;
    if (is(h, "a huge size")) *size = (SQLULEN)-1;
    if (is(h, "digits")) *type = SQL_DECIMAL, *size = 5, *digits = 2;
    if (is(h, "a date")) *type = SQL_TYPE_DATE;
    if (is(h, "a bit")) *type = SQL_BIT;
    if (is(h, "a type")) *type = -32000;
    if (is(h, "bytes")) *type = SQL_VARBINARY;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLColAttributeW(SQLHSTMT h, SQLUSMALLINT number, SQLUSMALLINT field,
                                   SQLPOINTER text, SQLSMALLINT max, SQLSMALLINT *length,
                                   SQLLEN *value) {
    (void)h, (void)number, (void)field, (void)text, (void)max, (void)length;
    *value = 7;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLBindCol(SQLHSTMT h, SQLUSMALLINT number, SQLSMALLINT type, SQLPOINTER value,
                             SQLLEN width, SQLLEN *length) {
    struct statement *s = h;
    (void)type;
    if (number == 1) s->value = value, s->width = width, s->length = length;
    if (number == 2) s->length_of_second = length;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLSetStmtAttrW(SQLHSTMT h, SQLINTEGER what, SQLPOINTER value, SQLINTEGER n) {
    struct statement *s = h;
    (void)n;
    if (what == SQL_ATTR_ROW_ARRAY_SIZE) s->array_size = (SQLULEN)value;
    if (what == SQL_ATTR_ROWS_FETCHED_PTR) s->fetched = value;
    if (what == SQL_ATTR_ROW_STATUS_PTR) s->status = value;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLGetStmtAttrW(SQLHSTMT h, SQLINTEGER what, SQLPOINTER value, SQLINTEGER max,
                                  SQLINTEGER *length) {
    struct statement *s = h;
    (void)max, (void)length;
    if (what == SQL_ATTR_ROW_ARRAY_SIZE) {
        *(SQLULEN *)value = is(s, "more rows at a time") ? s->array_size + 1 : s->array_size;
        if (is(s, "no rows at a time")) *(SQLULEN *)value = 0;
    } else if (what >= SQL_ATTR_APP_ROW_DESC && what <= SQL_ATTR_IMP_PARAM_DESC) {
        *(SQLHANDLE *)value = &handle;
    } else {
        return SQL_ERROR;
    }
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLFetch(SQLHSTMT h) {
    struct statement *s = h;
    SQLWCHAR *text = s->value;
    if (s->done) return SQL_NO_DATA;
    s->done = 1;
    *s->fetched = is(s, "a million rows") ? 1000000 : is(s, "no rows") ? 0 : 1;
    s->status[0] = is(s, "a failed row") ? SQL_ROW_ERROR : SQL_ROW_SUCCESS;
    if (is(s, "many columns")) return SQL_SUCCESS;
    *s->length = 10;
    if (is(s, "digits")) {
        strcpy(s->value, "1.2.3");
        *s->length = 5;
        return SQL_SUCCESS;
    }
    if (is(s, "a date")) {
        ((SQLSMALLINT *)s->value)[0] = 2023;
        ((SQLSMALLINT *)s->value)[1] = 2;
        ((SQLSMALLINT *)s->value)[2] = 30;
        return SQL_SUCCESS;
    }
    if (is(s, "a bit")) {
        *(char *)s->value = 2;
        return SQL_SUCCESS;
    }
    if (is(s, "bytes")) {
        *s->length = 11;
        return SQL_SUCCESS_WITH_INFO;
    }
    wide(text, "short");
    if (is(s, "half a pair")) text[2] = 0xD800;
    if (is(s, "an odd length")) *s->length = 5;
    if (is(s, "a length of minus seven")) *s->length = -7;
    if (is(s, "no length")) *s->length = -9223372036854775807L - 1;
    if (is(s, "a huge length")) *s->length = 0x7FFFFFFFFFFFFFFE;
    if (strncmp(s->lie, "then ", 5) == 0) *s->length = SQL_NO_TOTAL;
    if (is(s, "then the second row") || is(s, "then no position")) {
        *s->fetched = 2;
        s->length[0] = 10, s->length[1] = SQL_NO_TOTAL;
    }
    if (is(s, "then two long texts")) *s->length_of_second = SQL_NO_TOTAL;
    if (is(s, "then twelve long rows")) {
        *s->fetched = 12;
        for (int row = 0; row < 12; row++) s->length[row] = SQL_NO_TOTAL;
    }
    return SQL_SUCCESS_WITH_INFO;
}

SQLRETURN SQL_API SQLSetPos(SQLHSTMT h, SQLSETPOSIROW row, SQLUSMALLINT what, SQLUSMALLINT lock) {
    (void)what, (void)lock;
    ((struct statement *)h)->sent[0] = 0;
    if (is(h, "then twelve long rows")) return SQL_SUCCESS;
    return row != 2 || is(h, "then no position") ? SQL_ERROR : SQL_SUCCESS;
}

SQLRETURN SQL_API SQLGetData(SQLHSTMT h, SQLUSMALLINT number, SQLSMALLINT type, SQLPOINTER value,
                             SQLLEN width, SQLLEN *length) {
    struct statement *s = h;
    SQLWCHAR *text = value;
    SQLLEN units = width / 2 - 1;
    (void)type;
    s->pieces++;
    if (is(s, "a huge length")) {
        *length = 0x7FFFFFFFFFFFFFFE;
        return SQL_SUCCESS_WITH_INFO;
    }
    if (is(s, "bytes")) {
        memset(value, 'b', 11);
        *length = 11;
        return SQL_SUCCESS;
    }
    for (SQLLEN i = 0; i < units; i++) text[i] = 'x';
    text[units] = 0;
    *length = SQL_NO_TOTAL;
    if ((is(s, "then the rest") || is(s, "then the second row")) && s->pieces == 3) {
        *length = 10;
        return SQL_SUCCESS;
    }
    if (is(s, "then two long texts") || is(s, "then twelve long rows")) {
        SQLLEN *sent = &s->sent[number - 1];
        if (*sent >= 3 << 20) {
            *length = 10;
            return SQL_SUCCESS;
        }
        *sent += units;
    }
    if (is(s, "then nothing")) return SQL_NO_DATA;
    if (is(s, "then minus two")) *length = -2;
    if (is(s, "then an empty piece")) text[0] = 0, memset(text + 1, 0xFF, (size_t)width - 2);
    if (is(s, "then NULL") && s->pieces == 2) *length = SQL_NULL_DATA;
    return SQL_SUCCESS_WITH_INFO;
}

SQLRETURN SQL_API SQLMoreResults(SQLHSTMT h) {
    return is(h, "several results") ? SQL_SUCCESS : SQL_NO_DATA;
}

SQLRETURN SQL_API SQLFreeStmt(SQLHSTMT h, SQLUSMALLINT what) {
    (void)h, (void)what;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLEndTran(SQLSMALLINT type, SQLHANDLE h, SQLSMALLINT how) {
    (void)type, (void)h, (void)how;
    return SQL_SUCCESS;
}

SQLRETURN SQL_API SQLGetDiagFieldW(SQLSMALLINT type, SQLHANDLE h, SQLSMALLINT number,
                                   SQLSMALLINT field, SQLPOINTER value, SQLSMALLINT max,
                                   SQLSMALLINT *length) {
    (void)type, (void)h, (void)number, (void)field, (void)value, (void)max, (void)length;
    return SQL_ERROR;
}

SQLRETURN SQL_API SQLGetDiagRecW(SQLSMALLINT type, SQLHANDLE h, SQLSMALLINT number, SQLWCHAR *state,
                                 SQLINTEGER *native, SQLWCHAR *message, SQLSMALLINT max,
                                 SQLSMALLINT *length) {
    (void)native;
    if (type != SQL_HANDLE_STMT || !is(h, "endless reasons")) return SQL_NO_DATA;
    if (number > 3) return SQL_NO_DATA;
    wide(state, "\"\\\x80??");
    for (SQLSMALLINT i = 0; i < max; i++) message[i] = 0xDC00;
    *length = 32767;
    return SQL_SUCCESS_WITH_INFO;
}
