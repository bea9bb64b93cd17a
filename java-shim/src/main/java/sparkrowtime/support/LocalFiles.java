package sparkrowtime.support;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system without a process for the permissions of each file. Where it has no native library, Hadoop
 * starts {@code chmod} for each file and for each file's checksum.
 */
public final class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new Raw());
  }

  /** Hadoop's settings, with this class if the path is a local one and they name no other. */
  static Configuration in(Path path, Configuration hadoop) throws IOException {
    if (hadoop.get("fs.file.impl") != null || !"file".equals(path.getFileSystem(hadoop).getUri().getScheme())) {
      return hadoop;
    }
    Configuration local = new Configuration(hadoop);
    local.setClass("fs.file.impl", LocalFiles.class, LocalFileSystem.class);
    local.setClassLoader(LocalFiles.class.getClassLoader());
    local.setBoolean("fs.file.impl.disable.cache", true); // others have the file system of that cache
    return local;
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      if (permission.getStickyBit()) { // which Java cannot set
        super.setPermission(path, permission);
      } else {
        Files.setPosixFilePermissions(
            pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
      }
    }
  }
}
