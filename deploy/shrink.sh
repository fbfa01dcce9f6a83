#!/bin/sh
# Removes from the installed packages what neither serving nor training reads, which is half of
# them, and compiles the rest. Argument: the environment.
set -eu
cd "$1"/lib/python3.*/site-packages

# The packages' own tests.
find . -type d -name tests -prune -exec rm -r {} +
# Sources of compiled modules, and types.
find . -type f \( -name '*.py[ixd]' -o -name '*.pxi' -o -name '*.c' -o -name '*.cc' -o -name '*.h' \) \
    -delete
# The parts of pyarrow for Flight and for object stores of its own, and second copies of a
# library under names that only compilers read.
rm -r pyarrow/*flight* pyarrow/*s3* pyarrow/libarrow_python.so pyarrow/libarrow_python.so.*.*.*
# The services of Amazon but for object storage and credentials.
find botocore/data -mindepth 1 -maxdepth 1 -type d \
    ! -name s3 ! -name sts ! -name 'sso*' ! -name signin -exec rm -r {} +
if [ -d tensorflow ]; then
    # Headers, and `clang` to parse them, which only compile custom operations.
    rm -r clang tensorflow/include
else
    # Predictions need the special functions alone.
    find scipy -mindepth 1 -maxdepth 1 -type d ! -name '_*' ! -name special -exec rm -r {} +
fi
# Symbols for debuggers. The libraries in `*.libs` were patched and break without theirs.
find . -type f \( -name '*.so' -o -name '*.so.*' \) ! -path './*.libs/*' \
    -exec strip --strip-unneeded {} +
# `tensorflow-cpu` gets the name that other packages require.
for metadata in tensorflow_cpu-*.dist-info; do
    [ -d "$metadata" ] || continue
    sed -i 's/^Name: .*/Name: tensorflow/' "$metadata/METADATA"
    mv "$metadata" "tensorflow-${metadata#*-}"
done
# The bytecode ignores the times of files: builders may round these, and Python would then
# recompile thousands of modules at every start.
"$1/bin/python" -m compileall -q -f -j 0 --invalidation-mode unchecked-hash "$1/lib"
