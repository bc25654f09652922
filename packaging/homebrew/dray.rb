# A formula for Homebrew. UNTESTED: neither Homebrew nor macOS is to be had where the packages are
# built, and the tests run on Linux only.
class Dray < Formula
  desc "Move query results out of databases as columns"
  homepage "https://github.com/dray-data/dray"
  url "https://github.com/dray-data/dray/archive/refs/tags/v0.1.0.tar.gz"
  sha256 "FILL IN WITH THE RELEASE"
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "rust" => :build

  def install
    system "cargo", "build", "--profile", "dist", "--locked", "--workspace"
    bin.install "target/dist/dray"
    lib.install "target/dist/#{shared_library("libadbc_driver_dray")}"
    system bin/"dray", "manual", man1
    generate_completions_from_executable(bin/"dray", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dray --version")
  end
end
