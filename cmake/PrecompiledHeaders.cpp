// A target that holds precompiled headers needs a file to compile.
