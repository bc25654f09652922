// The tests of arrow-adbc's c/validation for Dray's driver, on a PostgreSQL server.
//
// The environment has DRAY_DRIVER, the path of the driver, and DRAY_URI, that of the server.

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <arrow-adbc/adbc.h>
#include <gtest/gtest.h>
#include <nanoarrow/nanoarrow.h>

#include "validation/adbc_validation.h"
#include "validation/adbc_validation_util.h"

namespace {

using adbc_validation::Handle;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) {
    ADD_FAILURE() << name << " is not set";
    return "";
  }
  return value;
}

std::string identifier(std::string_view name) { return '"' + std::string(name) + '"'; }

AdbcStatusCode execute(AdbcConnection* connection, const std::string& sql, AdbcError* error) {
  Handle<AdbcStatement> statement;
  AdbcStatusCode status = AdbcStatementNew(connection, &statement.value, error);
  if (status == ADBC_STATUS_OK) {
    status = AdbcStatementSetSqlQuery(&statement.value, sql.c_str(), error);
  }
  if (status == ADBC_STATUS_OK) {
    status = AdbcStatementExecuteQuery(&statement.value, nullptr, nullptr, error);
  }
  return status;
}

class Dray : public adbc_validation::DriverQuirks {
 public:
  AdbcStatusCode SetupDatabase(AdbcDatabase* database, AdbcError* error) const override {
    AdbcStatusCode status = AdbcDatabaseSetOption(
        database, "driver", environment("DRAY_DRIVER").c_str(), error);
    if (status != ADBC_STATUS_OK) return status;
    return AdbcDatabaseSetOption(database, "uri", environment("DRAY_URI").c_str(), error);
  }

  AdbcStatusCode DropTable(AdbcConnection* connection, const std::string& name,
                           AdbcError* error) const override {
    return execute(connection, "DROP TABLE IF EXISTS " + identifier(name), error);
  }

  AdbcStatusCode DropTable(AdbcConnection* connection, const std::string& name,
                           const std::string& schema, AdbcError* error) const override {
    return execute(connection, "DROP TABLE IF EXISTS " + identifier(schema) + '.' + identifier(name),
                   error);
  }

  AdbcStatusCode DropTempTable(AdbcConnection* connection, const std::string& name,
                               AdbcError* error) const override {
    return execute(connection, "DROP TABLE IF EXISTS pg_temp." + identifier(name), error);
  }

  AdbcStatusCode DropView(AdbcConnection* connection, const std::string& name,
                          AdbcError* error) const override {
    return execute(connection, "DROP VIEW IF EXISTS " + identifier(name), error);
  }

  AdbcStatusCode EnsureDbSchema(AdbcConnection* connection, const std::string& name,
                                AdbcError* error) const override {
    return execute(connection, "CREATE SCHEMA IF NOT EXISTS " + identifier(name), error);
  }

  std::string BindParameter(int index) const override {
    return '$' + std::to_string(index + 1);
  }

  std::optional<std::string> PrimaryKeyTableDdl(std::string_view name) const override {
    return "CREATE TABLE " + std::string(name) + " (id BIGINT PRIMARY KEY)";
  }

  std::optional<std::string> PrimaryKeyIngestTableDdl(std::string_view name) const override {
    return "CREATE TABLE " + std::string(name) + " (id BIGSERIAL PRIMARY KEY, value BIGINT)";
  }

  std::optional<std::string> CompositePrimaryKeyTableDdl(std::string_view name) const override {
    return "CREATE TABLE " + std::string(name) +
           " (id_primary_col1 BIGINT, id_primary_col2 BIGINT,"
           " PRIMARY KEY (id_primary_col1, id_primary_col2))";
  }

  std::optional<std::string> ForeignKeyChildTableDdl(
      std::string_view child, std::string_view parent_1,
      std::string_view parent_2) const override {
    return "CREATE TABLE " + std::string(child) +
           " (id_child_col1 BIGINT PRIMARY KEY, id_child_col2 BIGINT, id_child_col3 BIGINT,"
           " FOREIGN KEY (id_child_col3) REFERENCES " + std::string(parent_1) + " (id),"
           " FOREIGN KEY (id_child_col1, id_child_col2) REFERENCES " + std::string(parent_2) +
           " (id_primary_col1, id_primary_col2))";
  }

  // The types that spec/types.md gives to Arrow's in PostgreSQL, and back.
  ArrowType IngestSelectRoundTripType(ArrowType type) const override {
    switch (type) {
      case NANOARROW_TYPE_INT8:
      case NANOARROW_TYPE_UINT8:
        return NANOARROW_TYPE_INT16;
      case NANOARROW_TYPE_UINT16:
        return NANOARROW_TYPE_INT32;
      case NANOARROW_TYPE_UINT32:
        return NANOARROW_TYPE_INT64;
      case NANOARROW_TYPE_UINT64:
        return NANOARROW_TYPE_DECIMAL128;
      case NANOARROW_TYPE_HALF_FLOAT:
        return NANOARROW_TYPE_FLOAT;
      case NANOARROW_TYPE_DURATION:
        return NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO;
      case NANOARROW_TYPE_LARGE_STRING:
      case NANOARROW_TYPE_STRING_VIEW:
        return NANOARROW_TYPE_STRING;
      case NANOARROW_TYPE_LARGE_BINARY:
      case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      case NANOARROW_TYPE_BINARY_VIEW:
        return NANOARROW_TYPE_BINARY;
      default:
        return type;
    }
  }

  bool supports_bulk_ingest_db_schema() const override { return true; }
  bool supports_bulk_ingest_temporary() const override { return true; }
  bool supports_cancel() const override { return true; }
  bool supports_execute_schema() const override { return true; }
  bool supports_partitioned_data() const override { return true; }
  bool supports_concurrent_statements() const override { return true; }
  bool supports_metadata_current_catalog() const override { return true; }
  bool supports_metadata_current_db_schema() const override { return true; }
  bool supports_statistics() const override { return true; }
  std::string catalog() const override { return "postgres"; }
  std::string db_schema() const override { return "public"; }

  std::optional<adbc_validation::SqlInfoValue> supports_get_sql_info(
      uint32_t code) const override {
    switch (code) {
      case ADBC_INFO_DRIVER_ADBC_VERSION:
        return ADBC_VERSION_1_1_0;
      case ADBC_INFO_DRIVER_NAME:
        return "Dray";
      case ADBC_INFO_VENDOR_NAME:
        return "PostgreSQL";
      default:
        return std::nullopt;
    }
  }
};

template <class Tests>
class Fixture : public ::testing::Test, public Tests {
 public:
  const adbc_validation::DriverQuirks* quirks() const override { return &quirks_; }
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Tests::SetUpTest()); }
  void TearDown() override { ASSERT_NO_FATAL_FAILURE(Tests::TearDownTest()); }

 private:
  Dray quirks_;
};

// What the suite ingests: NULL, -42, 0 and 42 of each unit.
int64_t nanoseconds(ArrowTimeUnit unit) {
  switch (unit) {
    case NANOARROW_TIME_UNIT_SECOND:
      return 42'000'000'000;
    case NANOARROW_TIME_UNIT_MILLI:
      return 42'000'000;
    case NANOARROW_TIME_UNIT_MICRO:
      return 42'000;
    default:
      return 42;
  }
}

class StatementFixture : public Fixture<adbc_validation::StatementTest> {
 protected:
  void ValidateIngestedTemporalData(ArrowArrayView* values, ArrowType type, ArrowTimeUnit unit,
                                    const char*) override {
    const int64_t value = nanoseconds(unit);
    if (type == NANOARROW_TYPE_TIMESTAMP) {
      ASSERT_NO_FATAL_FAILURE(adbc_validation::CompareArray<int64_t>(
          values, {std::nullopt, -value / 1000, 0, value / 1000}));
      return;
    }
    ASSERT_EQ(type, NANOARROW_TYPE_DURATION);
    ArrowInterval intervals[3];
    for (int i = 0; i < 3; ++i) {
      ArrowIntervalInit(&intervals[i], type);
      intervals[i].ns = (i - 1) * value;
    }
    ASSERT_NO_FATAL_FAILURE(adbc_validation::CompareArray<ArrowInterval*>(
        values, {std::nullopt, &intervals[0], &intervals[1], &intervals[2]}));
  }
};

using DrayDatabase = Fixture<adbc_validation::DatabaseTest>;
using DrayConnection = Fixture<adbc_validation::ConnectionTest>;
using DrayStatement = StatementFixture;
ADBCV_TEST_DATABASE(DrayDatabase)
ADBCV_TEST_CONNECTION(DrayConnection)
ADBCV_TEST_STATEMENT(DrayStatement)

}  // namespace
