#!/usr/bin/env bash
# A Debian package of an optimised build: make_deb.sh BUILD_DIR OUTPUT_DIR prints the file that it wrote. What `cmake --install` lays down under
# /usr, the configuration file, and the libraries that dpkg-shlibdeps finds the program to need.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$1
output=$2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
architecture=$(dpkg --print-architecture)
root=$stage/root
DESTDIR=$root cmake --install "$build" --prefix /usr --strip >/dev/null
install -D -m 0644 "$source_dir/packaging/espalier.default" "$root/etc/default/espalier"

# Licences: the project's own, and those of the headers that are compiled into the program.
documents=$root/usr/share/doc/espalier
mv "$documents/LICENSE" "$documents/copyright"
for package in nlohmann-json3-dev libcli11-dev libboost1.81-dev libfmt-dev libspdlog-dev libxxhash-dev; do
  if [ -e "/usr/share/doc/$package/copyright" ]; then
    mkdir -p "$documents/third-party"
    gzip -9nc "/usr/share/doc/$package/copyright" >"$documents/third-party/$package.gz"
  fi
done

mkdir -p "$stage/debian"  # dpkg-shlibdeps wants to be in a source package
touch "$stage/debian/control"
depends=$(cd "$stage" && dpkg-shlibdeps -O -e root/usr/bin/espalier 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo "make_deb: dpkg-shlibdeps found no libraries" >&2; exit 1; }

mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: espalier
Version: $version
Architecture: $architecture
Maintainer: The Espalier authors <espalier@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Recommends: systemd
Section: net
Priority: optional
Description: inference server for hybrid language models, built for agents
 Serves models of the Qwen3.5 / 3.6 family (Gated DeltaNet and gated attention)
 on the processor through the OpenAI API, and keeps what it computed of each
 conversation, so that only the new tokens of a turn are computed. Comes with a
 very small model to try it on.
CONTROL
echo /etc/default/espalier >"$root/DEBIAN/conffiles"
(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
# The service is not started unasked: somebody has to choose a model first.
cat >"$root/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ "$1" = configure ] && [ -n "$2" ]; then systemctl try-restart espalier.service; fi
fi
SCRIPT
cat >"$root/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now espalier.service; fi
SCRIPT
chmod 0755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"

mkdir -p "$output"
package=$output/espalier_${version}_$architecture.deb
dpkg-deb -Zzstd --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
